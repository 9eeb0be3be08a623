"""Write down the collectives of programs, and compare later programs with that budget.

A budget is a TOML file that people review: for each program the totals, and the collectives by kind and axes with the
lines that cause them.

    ["train.py:step"]
    partitioner = "xla"
    mesh = "data=4, model=2"
    received = 114688
    memory = 200704
    all_reduce = [
      { axes = "data", arrays = 4, bytes = 98304, lines = ["train.py:8 block: 49152", "train.py:9 block: 49152"] },
    ]

    annotations = [
      "argument up: f32[256,1024] P(None, 'model')",
    ]

What is compared: arrays and bytes for each kind and axes, the bytes received in all, and the memory. ``lines`` tell the
reader where the bytes came from, and are not compared: a renamed function or a moved line changes nothing that a device
does. ``annotations`` are not compared either; those that differ are named where a program is over its budget. Bytes and
memory may grow by ``tolerance`` (default: 1%), since versions of XLA differ in small things. A program that shrinks is
within the budget.

Order: programs by name, kinds by name, axes by bytes. The same programs give the same text.

Complexity: O(rows log rows).
"""

from __future__ import annotations

import json
import os
import re
import tomllib
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from shardpass.diagnostics import Diagnostic, Place
from shardpass.diagnostics.table_testing import BAD_BUDGET, OVER_BUDGET
from shardpass.report.collectives import Annotation, Collective, Collectives, Key
from shardpass.report.text import counted, show_apart
from shardpass.testing.annotations import changed, read_annotation
from shardpass.testing.expectation import Violation

TOLERANCE = 0.01
_NUMBER = re.compile(r":\d+(?=[: ])")  # of a line, in the text of a budget
HEAD = (
    "# Collectives and memory of one device in one run, by `shardpass budget`. Review changes of this file like those\n"
    "# of a benchmark: a new kind or more bytes means that the step sends more.\n"
)


@dataclass(frozen=True)
class Budget:
    """The budget of one program.

    Attributes:
        partitioner, target, mesh: the options with which the program was made; ``target`` "" is XLA for CPUs.
        received: the bytes that a device may receive in one run.
        memory: the bytes that a device may need; None if unknown.
        allowed: maps (kind, axes) to (arrays, bytes).
        lines: maps (kind, axes) to the lines that caused the bytes, as text.
        tolerance: the fraction by which bytes and memory may grow.
        annotations: the annotations of the program's arrays.
    """

    partitioner: str
    target: str
    mesh: str
    received: int
    memory: int | None
    allowed: Mapping[Key, tuple[int, int]]
    lines: Mapping[Key, tuple[str, ...]] = field(default_factory=dict)
    tolerance: float = TOLERANCE
    annotations: tuple[Annotation, ...] = ()


def budget_of(program: Collectives, target: str = "", tolerance: float = TOLERANCE) -> Budget:
    """Return the budget that ``program`` just meets."""
    lines: dict[Key, list[tuple[int, str]]] = {}
    for row in program.rows:
        lines.setdefault(row.key, []).append((-row.bytes, _line(row)))
    mesh = ", ".join(f"{name}={size}" for name, size in program.mesh)
    shown = {key: tuple(text for _, text in sorted(some)) for key, some in lines.items()}
    totals = program.bytes_received, program.memory, program.by_key
    return Budget(program.partitioner, target, mesh, *totals, shown, tolerance, program.annotations)


def excesses(program: Collectives, budget: Budget) -> tuple[Violation, ...]:
    """Return the parts of ``program`` that exceed ``budget``; () if within."""
    return tuple(_excesses(program, budget))


def _excesses(program: Collectives, budget: Budget) -> Iterator[Violation]:
    for key, now in program.by_key.items():
        allowed = budget.allowed.get(key, (0, 0))
        if now[0] > allowed[0] or now[1] > _grown(allowed[1], budget):
            arrays = counted(allowed[0], "array"), counted(now[0], "array")
            expected, got = map(", ".join, zip(arrays, show_apart(allowed[1], now[1]), strict=True))
            yield Violation(_named(key), expected, got, _more(program, budget, key))
    if program.bytes_received > _grown(budget.received, budget):
        yield Violation("bytes received", *show_apart(budget.received, program.bytes_received))
    if budget.memory is not None and program.memory is not None and program.memory > _grown(budget.memory, budget):
        yield Violation("memory of a device", *show_apart(budget.memory, program.memory))


def _more(program: Collectives, budget: Budget, key: Key) -> tuple[Collective, ...]:
    """Return the collectives of ``key`` missing from the budget, the most bytes first; all if the budget lists each."""
    rows = sorted((row for row in program.rows if row.key == key), key=lambda row: -row.bytes)
    known = Counter(_NUMBER.sub("", text) for text in budget.lines.get(key, ()))
    new = []
    for row in rows:
        text = _NUMBER.sub("", _line(row))
        known[text] -= 1
        if known[text] < 0:
            new.append(row)
    return tuple(new or rows)


def _line(row: Collective) -> str:
    """Format a collective as in a budget file."""
    function = f" {row.function}" if row.function else ""
    return f"{row.where}{function}: {row.bytes}"


def causes(program: Collectives, budget: Budget) -> tuple[str, ...]:
    """Return a sentence for each annotation in which ``program`` differs from ``budget``; () if none is known."""
    known = program.annotations and budget.annotations
    return changed(budget.annotations, program.annotations) if known else ()


def diagnostics(program: str, over: Iterable[Violation], file: str) -> list[Diagnostic]:
    """Return the excesses over the budget as diagnostics (SP641), each at the line with the most bytes."""
    return [
        OVER_BUDGET.at(one.place, program=program, what=one.what, got=one.got, allowed=one.expected, file=file)
        for one in over
    ]


def _grown(size: int, budget: Budget) -> float:
    return size * (1 + budget.tolerance)


def _named(key: Key) -> str:
    kind, axes = key
    return f"{kind} over {', '.join(axes)}" if axes else kind


# ---------------------------------------------------------------- files


def write_budgets(budgets: Mapping[str, Budget]) -> str:
    """Return the text of a budget file; the same budgets give the same text."""
    return "\n".join([HEAD, *("\n".join(_section(name, one)) for name, one in sorted(budgets.items()))])


def _section(name: str, budget: Budget) -> Iterator[str]:
    yield f"[{_text(name)}]"
    yield f"partitioner = {_text(budget.partitioner)}"
    if budget.target:
        yield f"target = {_text(budget.target)}"
    yield f"mesh = {_text(budget.mesh)}"
    yield f"received = {budget.received}"
    if budget.memory is not None:
        yield f"memory = {budget.memory}"
    if budget.tolerance != TOLERANCE:
        yield f"tolerance = {budget.tolerance}"
    kinds = sorted({kind for kind, _ in budget.allowed})
    for kind in kinds:
        yield f"{kind} = ["
        some = [(axes, *numbers) for (one, axes), numbers in budget.allowed.items() if one == kind]
        for axes, arrays, size in sorted(some, key=lambda one: (-one[2], one[0])):
            lines = ", ".join(map(_text, budget.lines.get((kind, axes), ())))
            names = _text(", ".join(axes))
            yield f"  {{ axes = {names}, arrays = {arrays}, bytes = {size}, lines = [{lines}] }},"
        yield "]"
    if budget.annotations:
        yield "annotations = ["
        yield from (f"  {_text(str(one))}," for one in budget.annotations)
        yield "]"
    yield ""


def _text(value: str) -> str:
    """Write a basic string of TOML: JSON's escapes are among TOML's."""
    return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")


def read_budgets(path: str | os.PathLike[str]) -> dict[str, Budget]:
    """Read a budget file: budgets by the name of the program.

    Raises:
        ShardpassError: SP640 for text of another form.
        OSError: if the file cannot be read.
    """
    raw = Path(path).read_bytes()
    try:
        return {name: _read(table) for name, table in tomllib.loads(raw.decode()).items()}
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        reason = f"{error.args[0]!r} is missing" if isinstance(error, KeyError) else str(error)
        raise BAD_BUDGET.error(Place(os.fspath(path)), reason=reason) from None


_FIELDS = frozenset({"partitioner", "target", "mesh", "received", "memory", "tolerance", "annotations"})


def _read(table: Mapping[str, Any]) -> Budget:
    allowed: dict[Key, tuple[int, int]] = {}
    lines: dict[Key, tuple[str, ...]] = {}
    for kind, entries in table.items():
        for entry in () if kind in _FIELDS else entries:
            axes = tuple(name.strip() for name in entry["axes"].split(",") if name.strip())
            allowed[kind, axes] = (int(entry["arrays"]), int(entry["bytes"]))
            lines[kind, axes] = tuple(map(str, entry.get("lines", ())))
    memory = table.get("memory")
    return Budget(
        str(table["partitioner"]),
        str(table.get("target", "")),
        str(table["mesh"]),
        int(table["received"]),
        None if memory is None else int(memory),
        allowed,
        lines,
        float(table.get("tolerance", TOLERANCE)),
        tuple(map(read_annotation, table.get("annotations", ()))),
    )
