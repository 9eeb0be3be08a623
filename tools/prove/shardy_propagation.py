#!/usr/bin/env python
"""Propagation beside Shardy's, on the cases that Shardy's own tests hold.

    git clone https://github.com/openxla/shardy FOLDER
    python -m tools.prove.shardy_propagation FOLDER                  how many values are split alike
    python -m tools.prove.shardy_propagation FOLDER --show           and each value that is not
    python -m tools.prove.shardy_propagation FOLDER --effort 1       with the search for cheaper shardings

The cases are the functions of FOLDER's ``transforms/propagation/test/*.mlir``. Each is propagated by the Shardy that
jaxlib holds, with its propagation pipeline, and by shardpass. Compared are the arguments, the results and the values of
ops that have a dimension, by the tile that each device holds, in the function and in its regions. Left out are

- arguments and results that the user fixed, since propagation decides none of them, and those that the user split
  unevenly: the last step of Shardy's pipeline takes the split away, and shardpass keeps what the user said;
- values of functions that are called, those that one side copies or has no op for, and those with an edge of data flow
  in the text, which has the sharding in their place.

Each case runs in a fork: some end their process. The answer is a line for each file, and the sum.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import sys
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

os.environ.setdefault("JAX_PLATFORMS", "cpu")

from jaxlib.mlir import ir
from jaxlib.mlir.passmanager import PassManager

from shardpass.diagnostics import ShardpassError
from shardpass.ir.annotations import SHARDING, Signature, get_text
from shardpass.ir.context import parse_module
from shardpass.ir.replica_groups import mesh_parts
from shardpass.ir.tensors import is_ranked, shape_of
from shardpass.ir.walk import every_op, operation
from shardpass.pipeline.run import run_pipeline
from shardpass.program.validate import read_for
from shardpass.sharding import Mesh, Sharding, parse_sdy
from shardpass.sharding.notations.sdy import mesh_or_device

TESTS = "shardy/dialect/sdy/transforms/propagation/test"
PIPELINE, PROPAGATE = "sdy-propagation-pipeline", "sdy-user-priority-propagate"
RULES = "op_sharding_rule_registry"  # files about rules, whose values have no shardings
SDY_SHARDING = "sdy.sharding"
SEVERAL = ("sdy.manual_computation", "sdy.named_computation", "sdy.sharding_group")  # no op of one place takes theirs

Tiles = dict[str, list[tuple[str, Any]]]  # a value's name -> of each op that makes it, the sharding and its tiles


@dataclass(frozen=True)
class Case:
    file: str
    function: str
    text: str

    @property
    def passes(self) -> str:
        """Shardy's pipeline; it refuses a text that has edges of data flow, which it would add."""
        return PROPAGATE if "data_flow_edge" in self.text else PIPELINE


@dataclass(frozen=True)
class Outcome:
    """Of one case: the values that are split alike, and of each other one its name and both shardings."""

    alike: int = 0
    apart: tuple[tuple[str, str, str], ...] = ()
    refused: str = ""


def cases(folder: Path) -> Iterator[Case]:
    for path in sorted((folder / TESTS).glob("*.mlir")):
        if path.name.startswith(RULES):
            continue
        text = path.read_text()
        for section in re.split(r"^// -----.*$", text, flags=re.MULTILINE):
            for name in re.findall(r"^\s*func\.func (?:public )?@(\w+)", section, flags=re.MULTILINE):
                yield Case(path.name, name, section)


def examine(case: Case, effort: int) -> Outcome:
    """Both propagations of one case, in this process."""
    try:
        module = _alone(parse_module(case.text), case.function)
    except ShardpassError as error:
        return Outcome(refused=f"no case: {error.diagnostics[0].message.splitlines()[0]}")
    text = module.operation.get_asm(enable_debug_info=True)
    try:
        found = run_pipeline(text, f"builtin.module(shardpass-import,shardpass-propagate{{effort={effort}}})")
    except ShardpassError as error:
        return Outcome(refused=f"shardpass: {error.diagnostics[0]}".splitlines()[0])
    meshes = _meshes(module)
    left = _fixed(module, meshes) | _before_edges(module)
    with module.context:
        PassManager.parse(f"builtin.module({case.passes})").run(module.operation)
        meshes |= _meshes(module)
        theirs = _tiles(module, lambda said, value: _by_shardy(said, meshes))
    with found.context:
        ours = _tiles(found, lambda said, value: read_for(said, [value.type])[0])
    alike, apart = 0, []
    for name in theirs:
        if name not in left and name in ours and len(theirs[name]) == len(ours[name]) == 1:
            (their_text, their_tiles), (our_text, our_tiles) = theirs[name][0], ours[name][0]
            if their_tiles == our_tiles:
                alike += 1
            else:
                apart.append((name, their_text, our_text))
    return Outcome(alike, tuple(apart))


def _alone(module: Any, function: str) -> Any:
    """``module`` with ``function`` as its main, the meshes that are named there, and each op named by its number."""
    with module.context:
        top = [operation(op) for op in module.body.operations]
        for op in top:
            if op.name == "func.func":
                is_it = op.attributes["sym_name"].value == function
                if is_it:
                    op.attributes["sym_name"] = ir.StringAttr.get("main")
                op.attributes["sym_visibility"] = ir.StringAttr.get("public" if is_it else "private")
        PassManager.parse("builtin.module(symbol-dce)").run(module.operation)
        named = str(module.operation)
        for op in [operation(op) for op in module.body.operations]:
            if op.name == "sdy.mesh" and len(re.findall(rf"@{op.attributes['sym_name'].value}\b", named)) == 1:
                op.erase()
        for number, op in enumerate(every_op(module.operation)):
            op.location = ir.Location.name(f"{op.name} {number}")
    return module


def _meshes(module: Any) -> dict[str, Mesh | int]:
    found = [operation(op) for op in module.body.operations if operation(op).name == "sdy.mesh"]
    return {op.attributes["sym_name"].value: mesh_or_device(*mesh_parts(op.attributes["mesh"])) for op in found}


def _main(module: Any) -> Any:
    return next(op for op in map(operation, module.body.operations) if get_text(op, "sym_name") == "main")


def _fixed(module: Any, meshes: dict[str, Mesh | int]) -> set[str]:
    """The arguments and results of main whose sharding has no open dimension, or splits one unevenly."""
    main = _main(module)
    signature, kind = Signature(main), main.attributes["function_type"].value
    sides = (("argument", signature.arguments, kind.inputs), ("result", signature.results, kind.results))
    found = set()
    for role, rows, types in sides:
        for index, (row, of) in enumerate(zip(rows, types, strict=True)):
            if SDY_SHARDING in row:
                said = str(row[SDY_SHARDING])
                sharding = parse_sdy(said, meshes)
                counts = sharding.tile_counts(of.rank) if any(sharding.dims) else ()
                if "?" not in said or any(size % n for size, n in zip(of.shape, counts, strict=False)):
                    found.add(f"{role} {index}")
    return found


def _before_edges(module: Any) -> set[str]:
    """The values of main that an edge of data flow takes."""
    edges = [op for op in every_op(_main(module)) if op.name in ("sdy.data_flow_edge", "sdy.func_data_flow_edge")]
    found = set()
    for edge in edges:
        value = edge.operands[0]
        if isinstance(value, ir.OpResult):
            found.add(f"{operation(value.owner).location.name_str}#{value.result_number}")
    return found


def _by_shardy(said: str, meshes: dict[str, Mesh | int]) -> Sharding:
    return parse_sdy(said, meshes)


def _tiles(module: Any, read: Any) -> Tiles:
    """What each value of main is split into."""
    main = _main(module)
    found: Tiles = {}

    def note(name: str, value: Any, said: str | None) -> None:
        if is_ranked(value) and shape_of(value):
            sharding = Sharding.replicated() if said is None else read(said, value)
            rows = found.setdefault(name, [])
            rows.append((said or "none", _offsets(sharding, shape_of(value))))

    signature, block = Signature(main), main.regions[0].blocks[0]
    for index, (value, row) in enumerate(zip(block.arguments, signature.arguments, strict=True)):
        note(f"argument {index}", value, _row(row))
    end = operation(list(block.operations)[-1])
    for index, (value, row) in enumerate(zip(end.operands, signature.results, strict=True)):
        note(f"result {index}", value, _row(row))
    for op in every_op(main):
        place = re.match(r'loc\("(?:[^"]*/)?([\w.]+ \d+)"', str(op.location))
        if place is None or op.name in SEVERAL or place[1].split()[0] in SEVERAL:
            continue
        said = _said(op)
        for index, value in enumerate(op.results):
            note(f"{place[1]}#{index}", value, said[index] if index < len(said) else None)
    return found


def _row(row: dict[str, Any]) -> str | None:
    said = row.get(SHARDING) or row.get(SDY_SHARDING)
    return None if said is None else said.value if isinstance(said, ir.StringAttr) else str(said)


def _said(op: Any) -> list[str]:
    if SHARDING in op.attributes:
        text = op.attributes[SHARDING].value
        return [str(s) for s in read_for(text, [r.type for r in op.results])]
    if op.name.startswith("sdy.") and "sharding" in op.attributes:
        return [str(op.attributes["sharding"])]
    if SDY_SHARDING in op.attributes:
        from jaxlib.mlir.dialects import sdy

        return [str(s) for s in sdy.TensorShardingPerValueAttr(op.attributes[SDY_SHARDING]).shardings]
    return []


def _offsets(sharding: Sharding, shape: tuple[int, ...]) -> Any:
    """Where the tile of each device begins; of what splits nothing, nothing."""
    if not any(sharding.dims):
        return f"device {sharding.device}" if sharding.is_maximal else "whole"
    return sharding.tile_shape(shape), sharding.tile_offsets(shape).tolist()


def forked(case: Case, effort: int) -> Outcome:
    """``examine`` in a fork of this process, which holds no context of MLIR."""
    reader, writer = os.pipe()
    child = os.fork()
    if not child:
        os.close(reader)
        os.dup2(os.open(os.devnull, os.O_WRONLY), 2)
        with os.fdopen(writer, "w") as out:
            try:
                outcome = examine(case, effort)
            except Exception as error:  # of Shardy's passes, or of this comparison
                outcome = Outcome(refused=f"{type(error).__name__}: {error}".splitlines()[0])
            json.dump([outcome.alike, outcome.apart, outcome.refused], out)
        os._exit(0)
    os.close(writer)
    with os.fdopen(reader) as given:
        text = given.read()
    _, status = os.waitpid(child, 0)
    if not text:
        return Outcome(refused=f"the process ended with status {status}")
    alike, apart, refused = json.loads(text)
    return Outcome(alike, tuple(map(tuple, apart)), refused)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path, help="a checkout of openxla/shardy")
    parser.add_argument("--effort", type=int, default=0, help="of shardpass-propagate (0: propagation alone)")
    parser.add_argument("--only", default="", help="files or functions whose name holds this")
    parser.add_argument("--show", action="store_true", help="print each value that is split in another way")
    args = parser.parse_args()
    alike, apart, refused = Counter[str](), Counter[str](), Counter[str]()
    for case in cases(args.folder):
        if args.only not in case.file + case.function:
            continue
        outcome = forked(case, args.effort)
        alike[case.file] += outcome.alike
        apart[case.file] += len(outcome.apart)
        refused[case.file] += bool(outcome.refused)
        if args.show:
            for name, theirs, ours in outcome.apart:
                print(f"{case.file} @{case.function}: {name}\n    Shardy     {theirs}\n    shardpass  {ours}")
            if outcome.refused:
                print(f"{case.file} @{case.function}: {outcome.refused}")
    for file in alike:
        print(f"{file}: {_share(alike[file], apart[file])}, {refused[file]} cases refused")
    print(f"all: {_share(sum(alike.values()), sum(apart.values()))}, {sum(refused.values())} cases refused")
    return 0


def _share(alike: int, apart: int) -> str:
    values = alike + apart
    return f"{alike} of {values} values alike ({100 * alike / max(values, 1):.1f}%)"


if __name__ == "__main__":
    sys.exit(main())
