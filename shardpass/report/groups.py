"""Rows put together: by line, by axis, by kind or by array, those that repeat folded into one.

Example: a network of 24 layers has 24 all_gathers at one line, of ``params['layers'][0]['w1']`` to ``[23]``. They are
one row of the report, "24 x all_gather ... params['layers'][*]['w1']".
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

from shardpass.by_device import most_received
from shardpass.diagnostics import NOWHERE, Place
from shardpass.report.rows import Row, Totals, folded_name

LINE, AXIS, KIND, ARRAY = "line", "axis", "kind", "array"
PROGRAM, BYTES, TIME = "program", "bytes", "time"


@dataclass(frozen=True, slots=True)
class Folded:
    """Rows that say the same, ``rows``: ``row`` is the first of them, ``runs`` how often they run together."""

    row: Row
    array: str  # with ``[*]`` for indices that differ
    count: int
    runs: int
    bytes_received: int
    seconds: float
    rows: tuple[Row, ...]


@dataclass(frozen=True, slots=True)
class Group(Totals):
    """The rows of one line, axis, kind or array."""

    key: str
    rows: tuple[Row, ...]
    place: Place = NOWHERE  # of a line

    @property
    def folded(self) -> tuple[Folded, ...]:
        """Its rows, those that repeat as one, most bytes first."""
        return fold(self.rows)


def fold(rows: Iterable[Row]) -> tuple[Folded, ...]:
    """Rows that differ in the indices of their arrays, in their names and in their bytes alone become one."""
    same: dict[object, list[Row]] = {}
    for row in rows:
        array = folded_name(row.array)
        what = (row.kind, row.axes, array, row.source, row.target, row.direction)
        same.setdefault((what, row.unknown_loops, row.counted, row.place), []).append(row)
    return tuple(sorted(map(_folded, same.values()), key=lambda one: -one.bytes_received))


def _folded(rows: Sequence[Row]) -> Folded:
    first = rows[0]
    names = {row.array for row in rows}
    array = first.array if len(names) == 1 else folded_name(first.array)
    return Folded(
        first,
        array,
        len(rows),
        sum(row.times for row in rows),
        most_received((row.bytes_received, row.receivers) for row in rows),
        sum(row.seconds for row in rows),
        tuple(rows),
    )


def group(rows: Iterable[Row], by: str = LINE, sort: str = BYTES) -> tuple[Group, ...]:
    """The groups of ``rows``, those with most bytes or time first, or in the order of the program."""
    found: dict[str, list[Row]] = {}
    for row in rows:
        found.setdefault(_KEYS[by](row), []).append(row)
    groups = [Group(key, tuple(some), some[0].place if by == LINE else NOWHERE) for key, some in found.items()]
    if sort == PROGRAM:
        return tuple(groups)
    return tuple(sorted(groups, key=lambda one: -(one.bytes_received if sort == BYTES else one.seconds)))


def _line(row: Row) -> str:
    return "" if row.place == NOWHERE else f"{row.place.file}:{row.place.line}"


_KEYS: Mapping[str, Callable[[Row], str]] = {
    LINE: _line,
    AXIS: lambda row: row.axes,
    KIND: lambda row: row.kind,
    ARRAY: lambda row: folded_name(row.array),
}
GROUPINGS, SORTS = tuple(_KEYS), (BYTES, TIME, PROGRAM)
