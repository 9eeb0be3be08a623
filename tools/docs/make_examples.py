#!/usr/bin/env python
"""Writes examples/*.mlir from the programs under examples/programs, or checks that they are not stale.

    python -m tools.docs.make_examples            # write them
    python -m tools.docs.make_examples --check    # compare with what this JAX makes; exit 1 where one differs

Each program is written twice: NAME.mlir with `mhlo.sharding` strings and `@Sharding` custom calls (what JAX
lowers to with jax_use_shardy_partitioner=False), NAME.sdy.mlir with `sdy.mesh` and `sdy.sharding`.

The check compares what matters and not the text: the types and shardings of main's arguments and results, the
meshes, and the constraints inside; and, where the same version of JAX made the file, how many there are of each
op, else what the two programs compute (partitioned by XLA, on random inputs; where a function has two files, of
NAME.sdy.mlir alone). Source positions are no part of it.
"""

from __future__ import annotations

import argparse
import importlib.util
import re
import sys
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from types import ModuleType
from typing import Any

import jax
from jax._src import source_info_util
from jax.sharding import AxisType
from jaxlib.mlir import ir

from shardpass.ir.context import parse_module
from shardpass.ir.tensors import every_op
from shardpass.runtime import compile_by_xla
from shardpass.runtime.compare import Difference, compare
from shardpass.runtime.inputs import random_inputs
from shardpass.sharding import Mesh
from tools.processes import ROOT

EXAMPLES = ROOT / "examples"
LOWERED = ("mlp", "transformer", "shard_map")  # each has MESH and programs(mesh)
WRITTEN = ("format_document",)  # each has texts()
DEVICES = 8
HEADER = "// Made by tools/docs/make_examples.py from examples/programs/{source}.py"


@dataclass(frozen=True, slots=True)
class Example:
    """One file of examples/."""

    file: str
    text: str


def load(source: str) -> ModuleType:
    """The program's file as a module; its path gives the locations in what is lowered from it."""
    spec = importlib.util.spec_from_file_location(source, EXAMPLES / "programs" / f"{source}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[source] = module
    spec.loader.exec_module(module)
    return module


def configure() -> None:
    """Virtual devices, and locations of one frame, named relative to the repository."""
    jax.config.update("jax_platforms", "cpu")
    jax.config.update("jax_num_cpu_devices", DEVICES)
    jax.config.update("jax_include_full_tracebacks_in_locations", False)
    jax.config.update("jax_hlo_source_file_canonicalization_regex", re.escape(f"{ROOT}/"))
    source_info_util.register_exclusion(__file__)


def lower(source: str) -> Iterator[Example]:
    """Lowers the programs of one file in both annotations."""
    module = load(source)
    mesh = jax.make_mesh(
        tuple(module.MESH.values()), tuple(module.MESH), axis_types=(AxisType.Auto,) * len(module.MESH)
    )
    for shardy, suffix in ((False, ".mlir"), (True, ".sdy.mlir")):
        jax.config.update("jax_use_shardy_partitioner", shardy)
        for name, (function, arguments) in module.programs(mesh).items():
            operation = function.lower(*arguments).compiler_ir("stablehlo").operation
            if not shardy:  # the strings do not name the mesh's axes; import takes the names from this attribute
                names = str(Mesh(tuple(module.MESH.items())))
                operation.attributes["shardpass.mesh"] = ir.StringAttr.get(names, operation.context)
            header = HEADER.format(source=source) + f" with jax {jax.__version__}.\n"
            yield Example(name + suffix, header + operation.get_asm(enable_debug_info=True))


def written(source: str) -> Iterator[Example]:
    """The programs of a file that holds them as text."""
    header = HEADER.format(source=source) + ".\n"
    for name, (mhlo, sdy) in load(source).texts().items():
        yield Example(f"{name}.mlir", header + mhlo)
        yield Example(f"{name}.sdy.mlir", header + sdy)


def make() -> Iterator[Example]:
    for source in LOWERED:
        yield from lower(source)
    for source in WRITTEN:
        yield from written(source)


# --- what is compared


def kind(op: Any) -> str:
    target = f" {op.attributes['call_target_name']}" if op.name == "stablehlo.custom_call" else ""
    return f"{op.name}{target}"


def signature(main: Any) -> tuple[list[str], list[str]]:
    """Type and sharding of each argument and of each result of main."""

    def annotated(types: Any, key: str) -> list[str]:
        attributes = main.attributes[key] if key in main.attributes else [{}] * len(types)
        return [
            " ".join([str(t), *(str(a[n]) for n in ("mhlo.sharding", "sdy.sharding") if n in a)])
            for t, a in zip(types, attributes, strict=True)
        ]

    function = ir.FunctionType(ir.TypeAttr(main.attributes["function_type"]).value)
    return annotated(function.inputs, "arg_attrs"), annotated(function.results, "res_attrs")


@dataclass(frozen=True, slots=True)
class Facts:
    """What a program means to a partitioner."""

    signature: tuple[list[str], list[str]]
    meshes: frozenset[str]
    constraints: Counter[str]
    ops: Counter[str]


def facts(text: str) -> Facts:
    """Reads a program's facts. A mesh counts once however often JAX declares it."""
    module = parse_module(text)
    with module.context:
        ops = list(every_op(module.operation))[1:]
        (main,) = (op for op in ops if op.name == "func.func" and str(op.attributes["sym_name"]) == '"main"')
        return Facts(
            signature(main),
            frozenset(str(op.attributes["mesh"]) for op in ops if op.name == "sdy.mesh"),
            Counter(
                str(op.attributes[key])
                for op in ops
                for key in ("mhlo.sharding", "sharding")
                if op.name in ("stablehlo.custom_call", "sdy.sharding_constraint") and key in op.attributes
            ),
            Counter(kind(op) for op in ops if op.name != "sdy.mesh"),
        )


def made_by_this_jax(text: str) -> bool:
    return " with jax " not in text.split("\n", 1)[0] or f" with jax {jax.__version__}." in text


def differences(stored: str, fresh: str, numbers: bool = True) -> list[str]:
    """Sentences that say in what two texts of one program differ. ``numbers``: and what they compute."""
    old, new = facts(stored), facts(fresh)
    found = [
        f"{what}: the file has {getattr(old, what)}, this JAX makes {getattr(new, what)}"
        for what in ("signature", "meshes", "constraints")
        if getattr(old, what) != getattr(new, what)
    ]
    if made_by_this_jax(stored) and old.ops != new.ops:
        changed = (op for op in sorted(old.ops | new.ops) if old.ops[op] != new.ops[op])
        found.append("ops: " + ", ".join(f"{op} {old.ops[op]} -> {new.ops[op]}" for op in changed))
    if numbers and not found and not made_by_this_jax(stored):
        found += [f"numbers: result {d.index} differs by {d}" for d in apart(stored, fresh) if not d.passed]
    return found


def apart(stored: str, fresh: str) -> list[Difference]:
    """How far the results of two programs of one signature are from each other."""
    one, other = compile_by_xla(stored), compile_by_xla(fresh)
    inputs = random_inputs(one.signature.arguments)
    return compare(one(*inputs), other(*inputs))


def check(example: Example) -> list[str]:
    path = EXAMPLES / example.file
    if not path.exists():
        return ["there is no such file"]
    return differences(path.read_text(), example.text, numbers=example.file.endswith(".sdy.mlir"))


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--check", action="store_true", help="compare and write nothing")
    arguments = parser.parse_args()
    configure()
    stale = 0
    for example in make():
        if arguments.check:
            found = check(example)
            stale += bool(found)
            print("\n    ".join([f"examples/{example.file}: {'stale' if found else 'ok'}", *found]))
        else:
            (EXAMPLES / example.file).write_text(example.text)
            print(f"wrote examples/{example.file}")
    return 1 if stale else 0


if __name__ == "__main__":
    sys.exit(main())
