#!/usr/bin/env python
"""One program partitioned in one of three ways, run, compared with one device, and measured.

    python -m tools.bench.peers mlp_sgd xla            one answer, for people (ways: shardpass, xla, shardy)

Ways: ``shardpass`` is the pipeline "partition"; ``xla`` is what jax.jit compiles (Shardy's propagation, XLA's
partitioner); ``shardy`` is Shardy's own passes down to per-device code, which XLA then only compiles. Shardy's passes
and XLA can end the process that they run in, so a benchmark asks through ``Child``, a process that is started again
when it dies. Programs are those of test/integration/models.

An answer is a dict: ``status`` ("right", "wrong", "fails"), ``reason``, and where it compiled ``bytes``,
``collectives``, ``kinds``, ``unknown_loops`` (tools/bench/hlo_traffic.py), ``temp`` and ``output`` bytes (XLA's
compiled memory stats), ``error`` (greatest difference of a result, as test/integration/models/difference.py measures
it).
"""

from __future__ import annotations

import argparse
import contextlib
import json
import re
import select
import subprocess
import sys
import time
from typing import Any

from tools.bench.hlo_traffic import traffic
from tools.bench.real_programs import RealProgram, differences, real_programs
from tools.processes import environment, module_command

WAYS = ("shardpass", "xla", "shardy")
DEVICES = 8
SHARDY = (
    "sdy-propagation-pipeline",
    "func.func(sdy-insert-explicit-reshards{enable-full-version=true})",
    "canonicalize{enable-patterns=sdy-reshard}",
    "sdy-resolve-permutation-factors{enable-halo-exchange=true}",
    "func.func(sdy-reshard-to-collectives)",
    "func.func(sdy-pad-for-divisibility)",
    "sdy-convert-global-to-local",
    "sdy-drop-sharding-and-mesh",
)
_MESH = re.compile(r'sdy\.mesh @(\w+) = <\["([^\]]*)\]')
_AXIS = re.compile(r'"?([\w.]+)"=(\d+)')


# ---------------------------------------------------------------- Shardy's passes


def shardy_module(text: str) -> Any:
    """The per-device module that Shardy's own passes make, under the contract of shardpass's partitioned modules.

    It is given every help: calls are inlined first (it converts none), chlo.square is written as a product (its passes
    refuse CHLO, and jaxlib registers no pass that would lower it), and indices of gather and scatter are of 64 bits
    (with those of 32, which JAX has, it reads beyond them and ends the process).
    """
    from jaxlib.mlir import ir
    from jaxlib.mlir.passmanager import PassManager

    from shardpass.importing.inline_calls import inline_calls
    from shardpass.ir.context import parse_module

    module = parse_module(
        re.sub(r"chlo\.square (%[\w#]+) : (tensor<\S+>) -> \S+", r"stablehlo.multiply \1, \1 : \2", text)
    )
    with module.context, ir.Location.unknown():
        inline_calls(module)
        _widen_indices(module)
        meshes = _meshes(module)
        types = module.body.operations[1].attributes["function_type"].value
        whole = [*types.inputs, *types.results]
        shardings: list[str] = []
        for pipeline in SHARDY:
            if "convert-global" in pipeline:
                shardings = _boundary_shardings(module, meshes)
            PassManager.parse(f"builtin.module({pipeline})").run(module.operation)
        _annotate(module, whole, shardings, len(types.inputs))
    return module


def _widen_indices(module: Any) -> None:
    from jaxlib.mlir import ir

    from shardpass.ir.tensors import every_op

    wide = ir.IntegerType.get_signless(64)
    for op in [op for op in every_op(module.operation) if op.name in ("stablehlo.gather", "stablehlo.scatter")]:
        place = len(op.results)  # operands, one for each result, come before the indices
        indices = op.operands[place]
        kind = ir.RankedTensorType(indices.type)
        with ir.InsertionPoint(op), op.location:
            converted = ir.RankedTensorType.get(kind.shape, wide)
            op.operands[place] = ir.Operation.create("stablehlo.convert", [converted], [indices]).result


def _meshes(module: Any) -> dict[str, Any]:
    from shardpass.sharding import Mesh

    found = _MESH.findall(str(module.operation))
    return {name: Mesh(tuple((a, int(n)) for a, n in _AXIS.findall(axes))) for name, axes in found}


def _main(module: Any) -> Any:
    return next(op for op in module.body.operations if op.operation.name == "func.func")


def _boundary_shardings(module: Any, meshes: dict[str, Any]) -> list[str]:
    """mhlo text of the sharding of each argument and result of main."""
    from shardpass.sharding import Sharding
    from shardpass.sharding.sdy import parse_sdy

    main = _main(module)
    kind = main.attributes["function_type"].value
    found = []
    for name, types in (("arg_attrs", kind.inputs), ("res_attrs", kind.results)):
        rows = main.attributes[name] if name in main.attributes else [None] * len(types)
        for row in rows:
            said = row["sdy.sharding"] if row is not None and "sdy.sharding" in row else None
            found.append(str(Sharding.replicated() if said is None else parse_sdy(str(said), meshes)))
    return found


def _annotate(module: Any, whole: list[Any], shardings: list[str], arguments: int) -> None:
    from jaxlib.mlir import ir

    rows = [
        ir.DictAttr.get(
            {
                "mhlo.sharding": ir.StringAttr.get("{manual}"),
                "shardpass.sharding": ir.StringAttr.get(sharding),
                "shardpass.global_type": ir.TypeAttr.get(kind),
            }
        )
        for kind, sharding in zip(whole, shardings, strict=True)
    ]
    main = _main(module)
    main.attributes["arg_attrs"] = ir.ArrayAttr.get(rows[:arguments])
    main.attributes["res_attrs"] = ir.ArrayAttr.get(rows[arguments:])


# ---------------------------------------------------------------- one measurement


class Workbench:
    """Measures ways on programs in this process; keeps the last program, lowered, with its results on one device."""

    def __init__(self) -> None:
        self.name = ""
        self.lowered: Any = None
        self.expected: list[Any] = []

    def take(self, name: str) -> RealProgram:
        from shardpass.runtime import compile_single

        if name != self.name:
            self.lowered = real_programs()[name].lower()
            self.expected = compile_single(self.lowered.text)(*self.lowered.arguments)
            self.name = name
        return real_programs()[name]

    def measure(self, name: str, way: str) -> dict[str, Any]:
        program = self.take(name)
        start = time.perf_counter()
        try:
            hlo, memory, run = getattr(self, way)()
        except Exception as error:  # a peer may refuse anything in any way
            return {"status": "fails", "reason": _first_line(error)}
        seconds = time.perf_counter() - start
        moved = traffic(hlo, program.devices)
        answer = {
            "bytes": moved.bytes,
            "collectives": moved.collectives,
            "kinds": moved.by_kind,
            "unknown_loops": moved.unknown_loops,
            "temp": memory.temp_size_in_bytes,
            "output": memory.output_size_in_bytes,
            "compile_s": seconds,
        }
        try:
            apart = max(differences(run(), self.expected), default=0.0)
        except Exception as error:
            return {**answer, "status": "fails", "reason": _first_line(error)}
        right = apart <= program.tolerance
        reason = "" if right else f"differs by {apart:.2g} of the greatest magnitude"
        return {**answer, "status": "right" if right else "wrong", "reason": reason, "error": apart}

    def shardpass(self) -> Any:
        import shardpass
        from shardpass.diagnostics import collect

        with collect():
            module = shardpass.run_pipeline(self.lowered.text, "partition")
        return self._ours(module)

    def shardy(self) -> Any:
        return self._ours(shardy_module(self.lowered.text))

    def _ours(self, module: Any) -> Any:
        import shardpass

        executable = shardpass.compile(module)
        return executable.hlo_text(), executable.memory_stats(), lambda: executable(*self.lowered.arguments)

    def xla(self) -> Any:
        import jax

        compiled = self.lowered.lowered.compile()
        arguments = self.lowered.case.arguments
        placed = jax.tree.map(jax.device_put, arguments, compiled.input_shardings[0])
        return compiled.as_text(), compiled.memory_analysis(), lambda: jax.tree.leaves(compiled(*placed))


def _first_line(error: BaseException) -> str:
    told = [d.message for d in getattr(error, "error_diagnostics", ())] or [str(error)]
    lines = [line for line in told[0].splitlines() if line.strip()] or [""]
    return f"{type(error).__name__}: {lines[0]}"[:300]


# ---------------------------------------------------------------- children


def set_devices() -> None:
    import jax

    jax.config.update("jax_platforms", "cpu")
    jax.config.update("jax_num_cpu_devices", DEVICES)


def serve() -> None:
    """Answers each JSON line ``[program, way]`` on stdin with one line on stdout."""
    set_devices()
    bench = Workbench()
    for line in sys.stdin:
        name, way = json.loads(line)
        try:
            answer = bench.measure(name, way)
        except Exception as error:
            answer = {"status": "fails", "reason": f"the program itself: {_first_line(error)}"}
        print("@" + json.dumps(answer), flush=True)


class Child:
    """A process that measures; started when first asked, and again after it has died or taken too long."""

    def __init__(self, timeout: float = 300) -> None:
        self.timeout = timeout
        self.process: subprocess.Popen[str] | None = None

    def ask(self, name: str, way: str) -> dict[str, Any]:
        if self.process is None:
            self.process = subprocess.Popen(
                module_command("tools.bench.peers", "--serve"),
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                text=True,
                env=environment(),
            )
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        with contextlib.suppress(BrokenPipeError):
            self.process.stdin.write(json.dumps([name, way]) + "\n")
            self.process.stdin.flush()
        end = time.monotonic() + self.timeout
        while select.select([self.process.stdout], [], [], max(0.0, end - time.monotonic()))[0]:
            line = self.process.stdout.readline()
            if line.startswith("@"):
                answer: dict[str, Any] = json.loads(line[1:])
                return answer
            if not line:
                code = self.close()
                return {"status": "fails", "reason": f"ended the process (status {code})"}
        self.close()
        return {"status": "fails", "reason": f"took more than {self.timeout:.0f} s"}

    def close(self) -> int:
        """Ends the process, if there is one -> its status."""
        if self.process is None:
            return 0
        self.process.kill()  # does nothing to one that has ended
        status = self.process.wait()
        for pipe in (self.process.stdin, self.process.stdout):
            if pipe is not None:
                with contextlib.suppress(BrokenPipeError):
                    pipe.close()
        self.process = None
        return status


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("program", nargs="?")
    parser.add_argument("way", nargs="?", choices=WAYS)
    parser.add_argument("--serve", action="store_true", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.serve:
        serve()
        return 0
    if not arguments.way:
        parser.error("name a program and a way")
    set_devices()
    print(json.dumps(Workbench().measure(arguments.program, arguments.way), indent=2))
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
