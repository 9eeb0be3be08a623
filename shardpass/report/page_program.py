"""The program for the page: lines with their values, and memory and traffic from op to op.

A network of 24 layers that is written out has thousands of ops at few lines. So the page lists lines: each
line stands where its first op runs, forward and backward apart, and values of equal name, type and sharding are one
entry with a count.

Example: ``h = x @ p['up']`` in 24 layers is one line with one value, "24 x h f32[2048,1024] P('data', 'model')"; were
it split otherwise in one of the layers, the line would have a second.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from shardpass.diagnostics import NOWHERE
from shardpass.report.report import Report
from shardpass.report.rows import BACKWARD, MemoryFacts, OpFact, folded_name, short

MOST_POINTS = 4000  # of a curve: of more, neighbours are drawn as one, with the greatest of their values

Plain = dict[str, Any]


def sections(report: Report) -> list[Plain]:
    """Return the lines of the program with their values, in the order of their first op. Constants are left out."""
    lines: dict[object, Plain] = {}
    for op in report.ops:
        if op.name == "stablehlo.constant":
            continue
        back = op.direction == BACKWARD
        key = (op.place.file, op.place.line, back, op.depth, op.name if op.place == NOWHERE else "")
        line = lines.get(key)
        if line is None:
            nowhere = op.place == NOWHERE
            line = lines[key] = {
                "place": ("arguments" if op.number < 0 else "") if nowhere else short(op.place),
                "full": "" if nowhere else f"{op.place.file}:{op.place.line}",
                "line": report.sources.line(op.place),
                "backward": back,
                "depth": op.depth,
                "first": op.number,
                "ops": 0,
                "values": {},
            }
        line["ops"] += 1
        _add(op, line["values"])
    return [{**line, "values": list(line["values"].values())} for line in lines.values()]


def _add(op: OpFact, values: dict[object, Plain]) -> None:
    called = op.name.removeprefix("stablehlo.")
    for value in op.results:
        # arguments keep their full names, those of layers too
        name = value.name if op.number < 0 else folded_name(value.name)
        known = values.get((name, value.type, value.sharding, called))
        if known is None:
            known = values[name, value.type, value.sharding, called] = {
                "name": name,
                "op": called,
                "type": value.type,
                "sharding": value.sharding,
                "dims": value.dims,
                "bytes": value.bytes,
                "count": 0,
            }
        known["count"] += 1


# ---------------------------------------------------------------- from op to op


def course(report: Report, numbers: Mapping[int, int]) -> Plain | None:
    """Return memory and traffic by op number; None for a module that was already partitioned.

    ``memory``: [op, live bytes], valid until the next entry. ``traffic``: [op, row, bytes] of each collective;
    ``numbers`` maps the ``id`` of a ``Row`` to its number. ``places``: [op, place] where the line changes.
    ``backward``, ``loops``: ranges of ops.
    """
    ops = [op for op in report.ops if op.number >= 0]
    if not ops or report.memory is None:
        return None
    end = ops[-1].number + 1  # where results are made ready
    return {
        "end": end,
        "memory": _curve(report.memory, end),
        "traffic": [[end if row.op is None else row.op, numbers[id(row)], row.bytes_received] for row in report.rows],
        "places": list(_places(ops)),
        "backward": _ranges(ops, [op.direction == BACKWARD for op in ops]),
        "loops": _ranges(ops, [op.depth > 0 for op in ops]),
    }


def _curve(memory: MemoryFacts, end: int) -> list[list[int]]:
    """Return the most bytes alive at each op; negative op numbers belong to the end of the program."""
    most = {0: memory.arguments + memory.results}
    for number, size in memory.at:
        op = end if number < 0 else number
        most[op] = max(size, most.get(op, 0))
    points = sorted(most.items())
    width = -(-len(points) // MOST_POINTS) or 1
    groups = [points[start : start + width] for start in range(0, len(points), width)]
    return [[group[0][0], max(size for _, size in group)] for group in groups]


def _places(ops: Sequence[OpFact]) -> Iterator[list[Any]]:
    before = None
    for op in ops:
        now = "" if op.place == NOWHERE else short(op.place)
        if now != before:
            yield [op.number, now]
        before = now


def _ranges(ops: Sequence[OpFact], marked: Sequence[bool]) -> list[list[int]]:
    """Return [first, last + 1] of the runs of ops that are marked."""
    result: list[list[int]] = []
    for op, mark in zip(ops, marked, strict=True):
        if mark and result and result[-1][1] == op.number:
            result[-1][1] = op.number + 1
        elif mark:
            result.append([op.number, op.number + 1])
    return result
