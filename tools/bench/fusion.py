#!/usr/bin/env python
"""The table of fusions (``cost.fusion``) beside the fusions that XLA makes of the real programs.

    python -m tools.bench.fusion                   every program of test/integration/models
    python -m tools.bench.fusion mlp transformer   those whose name or family begins so
    python -m tools.bench.fusion --partitioned     what each device runs, instead of the whole program on one
    python -m tools.bench.fusion --misses 20       and the values on which both differ, those of most bytes first
    python -m tools.bench.fusion --json out.json

Each program is compiled by XLA:CPU for one device, without its shardings. Of the values that the optimised HLO writes
to memory, how many does the table predict (recall), and of those that the table predicts, how many does XLA write
(precision)? Both are given by count and by bytes. Values are equal where they have the element type and the number of
elements in common, as XLA reshapes and transposes freely; "named" is the part of them that also share the op_name.

XLA changes programs before it fuses ops: it joins equal ops, rewrites them in others, and writes a scatter as a loop on
CPUs. All of that counts against the table, and so do copies to other layouts, whose bytes the last column has.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from math import prod
from pathlib import Path
from typing import Any

import shardpass
from shardpass.diagnostics import ShardpassError, collect
from shardpass.ir.annotations import main_of
from shardpass.ir.locations import named
from shardpass.planning.price.borders import borders
from shardpass.program.table import table_of
from shardpass.runtime.reference import compile_single
from tools.bench.hlo_values import Size, Value, values_in
from tools.bench.peers import set_devices
from tools.bench.real_programs import RealProgram, real_programs
from tools.bench.report import show_table

HEADS = (
    "program",
    "written",
    "predicted",
    "recall",
    "precision",
    "recall, bytes",
    "precision, bytes",
    "named",
    "copies",
)


@dataclass(frozen=True, slots=True)
class Row:
    """One program: values by count and by bytes that XLA writes, that the table predicts, and that both do.

    ``copied_bytes``: of those that XLA alone writes, copies to other layouts.
    """

    name: str
    written: int = 0
    predicted: int = 0
    both: int = 0
    named: int = 0
    written_bytes: int = 0
    predicted_bytes: int = 0
    both_bytes: int = 0
    copied_bytes: int = 0
    reason: str = ""  # why nothing was measured


@dataclass(frozen=True, slots=True)
class Miss:
    """A value that one of both writes."""

    program: str
    by: str
    what: str
    name: str
    bytes: int


def predicted(module: Any) -> tuple[list[Value], frozenset[str]]:
    """The values that the table predicts are written of an imported module, and the op_names of its loops."""
    table = table_of(module, "fusion")
    program, handles = table.program, table.handles
    by_op = borders(program)
    values, loops = [], set()
    for op in program.body.every_op():
        name, _ = named(handles.ops[op.number].location)
        if op.is_loop:
            loops.add(name)
        for value, written in zip(op.results, by_op[op.number].writes, strict=True):
            if written and (array := program.arrays[value]) is not None:
                values.append(Value(Size(array.element.hlo, prod(array.shape)), name, op.called))
    return values, frozenset(loops)


def compared(name: str, theirs: Sequence[Value], ours: Sequence[Value]) -> tuple[Row, list[Miss]]:
    """How far the values that XLA writes are those that the table predicts."""
    by_size = [_by_size(values) for values in (theirs, ours)]
    both = both_bytes = same_name = 0
    misses = []
    for size in {**by_size[0], **by_size[1]}:
        written, guessed = by_size[0].get(size, []), by_size[1].get(size, [])
        count = min(len(written), len(guessed))
        both, both_bytes = both + count, both_bytes + count * size.bytes
        names = [Counter(value.name for value in values) for values in (written, guessed)]
        same_name += (names[0] & names[1]).total()
        misses += [Miss(name, "XLA", one.kind, one.name, size.bytes) for one in _beyond(written, names[1], count)]
        misses += [Miss(name, "the table", one.kind, one.name, size.bytes) for one in _beyond(guessed, names[0], count)]
    sums = [sum(value.size.bytes for value in values) for values in (theirs, ours)]
    copied = sum(miss.bytes for miss in misses if miss.by == "XLA" and "copy" in miss.what)
    return Row(name, len(theirs), len(ours), both, same_name, sums[0], sums[1], both_bytes, copied), misses


def _by_size(values: Iterable[Value]) -> dict[Size, list[Value]]:
    by_size = defaultdict[Size, list[Value]](list)
    for value in values:
        by_size[value.size].append(value)
    return by_size


def _beyond(values: Sequence[Value], names: Counter[str], count: int) -> list[Value]:
    """``values`` without ``count`` of them, those first whose name the other side has too."""
    left = Counter(names)
    known: list[Value] = []
    strange: list[Value] = []
    for value in values:
        (known if left[value.name] > 0 else strange).append(value)
        left[value.name] -= 1
    return [*known, *strange][count:]


def measure(program: RealProgram, partitioned: bool = False) -> tuple[Row, list[Miss]]:
    """Compiles ``program``, whole or ``partitioned``, and compares."""
    with collect():
        module = shardpass.run_pipeline(program.lower().text, "partition" if partitioned else "shardpass-import")
        try:
            text = (shardpass.compile(module) if partitioned else compile_single(module)).hlo_text()
        except ShardpassError as error:
            return Row(program.name, reason=str(error).split("\n")[0]), []
        with module.context:
            if partitioned:
                _forget_arguments(module)
            ours, loops = predicted(module)
    return compared(program.name, values_in(text, loops), ours)


def _forget_arguments(module: Any) -> None:
    """Takes off the shardings of arguments and results: they are those of whole arrays, where the types are tiles'."""
    attributes = main_of(module).attributes
    for name in ("arg_attrs", "res_attrs"):
        if name in attributes:
            del attributes[name]


def total(rows: Sequence[Row]) -> Row:
    """All rows as one program."""
    fields = [field for field in Row.__slots__ if field not in ("name", "reason")]
    return Row("all", *[sum(getattr(row, field) for row in rows) for field in fields])


def cells(row: Row) -> list[str]:
    def share(part: int, whole: int) -> str:
        return f"{part / whole:.0%}" if whole else "-"

    return [
        row.name,
        str(row.written),
        str(row.predicted),
        share(row.both, row.written),
        share(row.both, row.predicted),
        share(row.both_bytes, row.written_bytes),
        share(row.both_bytes, row.predicted_bytes),
        share(row.named, row.both),
        share(row.copied_bytes, row.written_bytes),
    ]


def main(argv: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("programs", nargs="*", help="beginnings of names or families; default: all")
    parser.add_argument("--partitioned", action="store_true", help="compare what each device runs")
    parser.add_argument("--misses", type=int, default=0, metavar="N", help="print the N greatest differences")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write every number")
    arguments = parser.parse_args(argv)
    wanted = tuple(arguments.programs)
    programs = [
        program
        for program in real_programs().values()
        if program.available and (not wanted or program.name.startswith(wanted) or program.family.startswith(wanted))
    ]
    if not programs:
        parser.error(f"no program is named {' or '.join(wanted)}")
    set_devices()
    rows, misses = [], []
    for program in programs:
        print(program.name, file=sys.stderr)
        row, some = measure(program, arguments.partitioned)
        rows.append(row)
        misses += some
    if arguments.json:
        arguments.json.write_text(json.dumps([asdict(row) for row in rows], indent=1))
    notes = [f"{row.name}: not measured, {row.reason}" for row in rows if row.reason]
    show_table("values written to memory", HEADS, [cells(row) for row in (*rows, total(rows))], notes)
    for miss in sorted(misses, key=lambda miss: -miss.bytes)[: arguments.misses]:
        print(f"{miss.bytes:>9} only {miss.by:9} {miss.program}: {miss.what} {miss.name}")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
