"""Two reports beside each other, row by row: what one program receives more than another.

Rows of both are matched by line, kind, array, direction and axes, lines by what they say: a line that has only moved is
the same. What is equal is counted and not shown.

Complexity: O(rows).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from shardpass.diagnostics.printable import joined
from shardpass.html_table import html_table
from shardpass.report.groups import Group
from shardpass.report.report import Report
from shardpass.report.rows import BACKWARD, Row, folded_name
from shardpass.report.text import WIDTH, counted, shortened, show_bytes, wrapped

MOST_ROWS = 30


@dataclass(frozen=True, slots=True)
class Change:
    """Rows that say the same of both programs, with how often they run and the bytes of each; of either may be none."""

    row: Row
    before: int
    after: int
    runs_before: int
    runs_after: int

    @property
    def delta(self) -> int:
        return self.after - self.before


@dataclass(frozen=True)
class Difference:
    """The difference between two reports. ``changes``: rows that differ, the greatest first. ``same``: the number of
    equal rows.
    """

    before: Report
    after: Report
    changes: tuple[Change, ...]
    same: int

    def __str__(self) -> str:
        return joined(_lines(self, WIDTH))

    def __repr__(self) -> str:
        return f"<Difference: {self._totals}, {counted(len(self.changes), 'change')}>"

    @property
    def _totals(self) -> str:
        before, after = (show_bytes(report.total_bytes_received) for report in (self.before, self.after))
        return f"{before} received before, {after} after"

    def _repr_html_(self) -> str:
        rows = [
            (c.delta, c.before, c.after, c.row.where, c.row.kind, c.row.axes, folded_name(c.row.array))
            for c in self.changes[:MOST_ROWS]
        ]
        left = len(self.changes) - len(rows)
        more = f"and {counted(left, 'change')} more" if left else ""
        heads = ("change, bytes", "before", "after", "line", "collective", "over", "array")
        return html_table(self._totals, heads, rows, more)


def difference(before: Report, after: Report) -> Difference:
    """Compares two reports row by row: the bytes that change from ``before`` to ``after``."""
    sides: dict[object, tuple[list[Row], list[Row]]] = {}
    for place, report in enumerate((before, after)):
        for row in report.rows:
            sides.setdefault(_key(report, row), ([], []))[place].append(row)
    changes, same = [], 0
    for rows in sides.values():
        old, new = (Group("", tuple(some)) for some in rows)
        first = (new.rows or old.rows)[0]
        change = Change(first, old.bytes_received, new.bytes_received, old.runs, new.runs)
        if (change.before, change.runs_before) == (change.after, change.runs_after):
            same += len(new.rows)
        else:
            changes.append(change)
    changes.sort(key=lambda change: -abs(change.delta))
    return Difference(before, after, tuple(changes), same)


def _key(report: Report, row: Row) -> object:
    line = report.sources.line(row.place) or row.where
    return line, row.kind, row.axes, folded_name(row.array), row.direction


def _lines(difference: Difference, width: int) -> Iterator[str]:
    before, after = difference.before, difference.after
    yield f"{'':8}{'received':>12}{'collectives':>13}{'memory':>12}"
    for name, report in (("before", before), ("after", after)):
        memory = "-" if report.memory is None else show_bytes(report.memory.total)
        yield shortened(
            f"{name:8}{show_bytes(report.total_bytes_received):>12}{report.runs:>13,}{memory:>12}  {report.file}", width
        )
    if not difference.changes:
        yield "every row is the same"
        return
    yield ""
    yield f"{'change':>11}{'before':>12}{'after':>12}"
    for change in difference.changes[:MOST_ROWS]:
        yield from _change(change, width)
    if len(difference.changes) > MOST_ROWS:
        yield f"and {counted(len(difference.changes) - MOST_ROWS, 'change')} more"
    if difference.same:
        yield f"{counted(difference.same, 'row')} {'is' if difference.same == 1 else 'are'} the same"


def _change(change: Change, width: int) -> list[str]:
    row = change.row
    sign = "+" if change.delta >= 0 else "-"
    figures = f"{sign + show_bytes(abs(change.delta)):>11}{show_bytes(change.before):>12}{show_bytes(change.after):>12}"
    where = "" if row.where == "-" else f" {row.where}"
    times = " to ".join(map(str, dict.fromkeys((change.runs_before, change.runs_after))))
    back = ", backward" if row.direction == BACKWARD else ""
    array = f": {folded_name(row.array)}" if row.array else ""
    axes = f" over {row.axes}" if row.axes else ""
    words = f"{where} {times} x {row.kind}{axes}{back}{array}".strip()
    return wrapped(words, width, f"{figures}  ", " " * (len(figures) + 2))
