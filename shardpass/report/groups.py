"""Group rows by line, axis, kind or array, and merge repeated rows.

A line may hold much of a program: one that calls a library, as ``trainer.fit(data)`` does, or that of a helper, as
``return jnp.einsum(...)``. Then it is a tree: its rows by the next step of ``Row.path`` at which they differ (a line of
the library, a name scope, a line that calls the helper), and so on below a part that holds much too.

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
MUCH = 5  # a line of more than a fifth of all bytes has parts


@dataclass(frozen=True, slots=True)
class Folded:
    """Rows that differ only in details: ``row`` is the first of ``rows``, and ``runs`` the sum of their runs."""

    row: Row
    array: str  # with ``[*]`` for indices that differ
    count: int
    runs: int
    bytes_received: int
    seconds: float
    rows: tuple[Row, ...]


@dataclass(frozen=True, slots=True)
class Group(Totals):
    """The rows that share a line, axes, kind or array, or the rows of a part of a line.

    Attributes:
        key: the full line; name scopes, "decoder/mlp"; the axes, the kind or the array.
        place: the place of a line.
        level: 0; for a part of a line, the number of enclosing parts.
        depth: the number of leading steps of ``Row.path`` that the rows share; None unless rows are grouped by line.
    """

    key: str
    rows: tuple[Row, ...]
    place: Place = NOWHERE
    level: int = 0
    depth: int | None = None

    @property
    def folded(self) -> tuple[Folded, ...]:
        """Return the rows, repeated rows merged, those with the most bytes first."""
        return fold(self.rows)

    def parts(self, total: int, sort: str = BYTES) -> tuple[Group, ...]:
        """Return the parts of a line that receives more than a fifth of ``total`` bytes, split at the first step
        where the paths of its rows differ.

        () for a line that receives less, and for one whose rows do not differ.
        """
        if self.depth is None or MUCH * self.bytes_received <= total:
            return ()
        depth, first = self.depth, self.rows[0].path
        while depth < len(first) and all(row.path[depth : depth + 1] == (first[depth],) for row in self.rows):
            depth += 1
        steps: dict[Place | str | None, list[Row]] = {}
        for row in self.rows:
            steps.setdefault(row.path[depth] if depth < len(row.path) else None, []).append(row)
        if len(steps) == 1:
            return ()
        above = [scope for scope in first[self.depth : depth] if isinstance(scope, str)]
        return _sorted([self._part(above, step, tuple(rows), depth + 1) for step, rows in steps.items()], sort)

    def _part(self, above: Sequence[str], step: Place | str | None, rows: tuple[Row, ...], depth: int) -> Group:
        """Return the part whose rows' paths continue with ``step``; None: whose paths end. ``above``: the scopes common
        to all parts.
        """
        if step is None:
            return Group(self.key, rows, self.place, self.level + 1, depth)
        if isinstance(step, Place):
            return Group(str(step), rows, step, self.level + 1, depth)
        return Group("/".join((*above, step)), rows, NOWHERE, self.level + 1, depth)


def fold(rows: Iterable[Row], *, apart: bool = True) -> tuple[Folded, ...]:
    """Merge rows that differ only in array indices, numbers in names, and bytes. ``apart``: keep rows with different
    paths separate.
    """
    same: dict[object, list[Row]] = {}
    for row in rows:
        array = folded_name(row.array)
        what = (row.kind, row.axes, array, row.source, row.target, row.direction)
        path = row.path if apart or row.place == NOWHERE else ()
        same.setdefault((what, row.unknown_loops, row.counted, row.place, path), []).append(row)
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
    """Group ``rows``, the groups with the most bytes or time first, or in program order."""
    rows_of: dict[str, list[Row]] = {}
    for row in rows:
        rows_of.setdefault(_KEYS[by](row), []).append(row)
    if by == LINE:
        groups = [Group(key, tuple(some), some[0].place, depth=_depth(some[0])) for key, some in rows_of.items()]
    else:
        groups = [Group(key, tuple(some)) for key, some in rows_of.items()]
    return _sorted(groups, sort)


def _sorted(groups: Sequence[Group], sort: str) -> tuple[Group, ...]:
    if sort == PROGRAM:
        return tuple(groups)
    return tuple(sorted(groups, key=lambda one: -(one.bytes_received if sort == BYTES else one.seconds)))


def _line(row: Row) -> str:
    return row.where if row.place == NOWHERE else f"{row.place.file}:{row.place.line}"


def _depth(row: Row) -> int:
    """Return the number of path steps by which a row is grouped: 0 for a row with a line, else its whole path."""
    return 0 if row.place != NOWHERE else len(row.path)


_KEYS: Mapping[str, Callable[[Row], str]] = {
    LINE: _line,
    AXIS: lambda row: ",".join(row.axes),
    KIND: lambda row: row.kind,
    ARRAY: lambda row: folded_name(row.array),
}
GROUPINGS, SORTS = tuple(_KEYS), (BYTES, TIME, PROGRAM)
