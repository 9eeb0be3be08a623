"""Compare two programs by their collectives: which appeared, went, moved to another line, or changed.

The programs are normalized first (``report.collectives``). Then pairs are formed in three steps; each collective is in
at most one pair:

1. The same line, kind, axes, array and direction. Lines are compared by their text, so that an edit above a line does
   not matter; by file and number where the text is unknown. A pair of equal count and bytes is "same", another
   "changed".
2. Of the rest, the same kind, axes, count and bytes at different lines: "moved".
3. What is left appeared or went.

Example: after w1's spec lost 'model', its all_reduce at mlp.py:12 went and an all_gather at mlp.py:11 appeared.

Complexity: O(rows log rows).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from shardpass.diagnostics.printable import joined
from shardpass.html_table import html_table
from shardpass.report.collectives import Collective, Collectives
from shardpass.report.markdown import markdown_table
from shardpass.report.text import WIDTH, counted, shortened, show_bytes, wrapped

APPEARED, WENT, MOVED, CHANGED = "appeared", "went", "moved", "changed"
MOST_ROWS = 30


@dataclass(frozen=True, slots=True)
class Change:
    """A difference between two reports. ``kind``: APPEARED (``before`` is None), WENT (``after`` is None), MOVED or
    CHANGED.
    """

    kind: str
    before: Collective | None
    after: Collective | None

    @property
    def row(self) -> Collective:
        """The collective of the later program; of a collective that went, that of the earlier."""
        row = self.after or self.before
        assert row is not None
        return row

    @property
    def bytes(self) -> tuple[int, int]:
        """Bytes before and after."""
        return (self.before.bytes if self.before else 0), (self.after.bytes if self.after else 0)

    @property
    def counts(self) -> tuple[int, int]:
        """Return the arrays before and after."""
        return (self.before.count if self.before else 0), (self.after.count if self.after else 0)

    @property
    def delta(self) -> int:
        """The bytes that are received more; negative for fewer."""
        before, after = self.bytes
        return after - before


@dataclass(frozen=True)
class Difference:
    """The difference between two programs. ``changes``: the largest in bytes first. ``same``: the number of equal
    collectives.
    """

    before: Collectives
    after: Collectives
    changes: tuple[Change, ...]
    same: int

    def __str__(self) -> str:
        return joined(_lines(self, WIDTH))

    def __repr__(self) -> str:
        return f"<Difference: {self._totals}, {counted(len(self.changes), 'change')}>"

    @property
    def costs_more(self) -> bool:
        """Whether the later program receives more bytes or needs more memory."""
        memory = (self.after.memory or 0) > (self.before.memory or 0) and None not in (
            self.before.memory,
            self.after.memory,
        )
        return memory or self.after.bytes_received > self.before.bytes_received

    @property
    def _totals(self) -> str:
        before, after = (show_bytes(one.bytes_received) for one in (self.before, self.after))
        return f"{before} received before, {after} after"

    def as_dict(self) -> dict[str, object]:
        """Return plain values for JSON."""
        sides = {
            name: {"name": one.name, "bytes_received": one.bytes_received, "memory": one.memory}
            for name, one in (("before", self.before), ("after", self.after))
        }
        changes = [
            {
                "change": change.kind,
                "kind": change.row.kind,
                "axes": list(change.row.axes),
                "array": change.row.array,
                "place_before": str(change.before.place) if change.before else None,
                "place_after": str(change.after.place) if change.after else None,
                "count": list(change.counts),
                "bytes": list(change.bytes),
            }
            for change in self.changes
        ]
        return {**sides, "changes": changes, "same": self.same}

    def markdown(self) -> str:
        """Return a Markdown table for the summary of a job or a comment in a review."""
        rows = [f"**{self._totals}**; memory {_memory(self.before)} before, {_memory(self.after)} after", ""]
        if not self.changes:
            return "\n".join([*rows, "Every collective is the same."])
        heads = ("change", "bytes", "before", "after", "collective", "over", "line", "array")
        rows += markdown_table(heads, map(_cells, self.changes[:MOST_ROWS]))
        left = len(self.changes) - MOST_ROWS
        return "\n".join([*rows, *([f"\nand {counted(left, 'change')} more"] if left > 0 else [])])

    def _repr_html_(self) -> str:
        rows = [
            (c.delta, *c.bytes, c.kind, _line(c), c.row.kind, ",".join(c.row.axes), c.row.array)
            for c in self.changes[:MOST_ROWS]
        ]
        left = len(self.changes) - len(rows)
        more = f"and {counted(left, 'change')} more" if left else ""
        heads = ("difference, bytes", "before", "after", "change", "line", "collective", "over", "array")
        return html_table(self._totals, heads, rows, more)


def difference(before: Collectives, after: Collectives) -> Difference:
    """Compare two programs: the changes from ``before`` to ``after``."""
    old, new = _keyed(before), _keyed(after)
    changes, same = [], 0
    for key in old.keys() & new.keys():
        one, other = old.pop(key), new.pop(key)
        if (one.count, one.bytes) == (other.count, other.bytes):
            same += 1
        else:
            changes.append(Change(CHANGED, one, other))
    left: dict[object, list[Collective]] = {}
    for row in old.values():
        left.setdefault((row.key, row.count, row.bytes), []).append(row)
    for row in new.values():
        alike = left.get((row.key, row.count, row.bytes))
        changes.append(Change(MOVED, alike.pop(0), row) if alike else Change(APPEARED, None, row))
    changes += [Change(WENT, row, None) for rows in left.values() for row in rows]
    changes.sort(key=lambda change: (-abs(change.delta), change.row.file, change.row.line, change.row.key))
    return Difference(before, after, tuple(changes), same)


def _keyed(program: Collectives) -> dict[object, Collective]:
    """Map a key that survives edits elsewhere to each collective; the number tells repeated keys apart."""
    result: dict[object, Collective] = {}
    seen: dict[object, int] = {}
    for row in program.rows:
        key = (row.text or row.where, row.key, row.array, row.direction)
        seen[key] = seen.get(key, -1) + 1
        result[key, seen[key]] = row
    return result


def _lines(difference: Difference, width: int) -> Iterator[str]:
    before, after = difference.before, difference.after
    yield f"{'':8}{'received':>12}{'arrays':>9}{'memory':>12}"
    for name, one in (("before", before), ("after", after)):
        arrays = sum(row.count for row in one.rows)
        yield shortened(
            f"{name:8}{show_bytes(one.bytes_received):>12}{arrays:>9,}{_memory(one):>12}  {one.name}", width
        )
    if not difference.changes:
        yield "every collective is the same"
        return
    yield ""
    yield f"{'change':>11}{'before':>12}{'after':>12}"
    for change in difference.changes[:MOST_ROWS]:
        yield from _change(change, width)
    if len(difference.changes) > MOST_ROWS:
        yield f"and {counted(len(difference.changes) - MOST_ROWS, 'change')} more"
    if difference.same:
        yield f"{counted(difference.same, 'collective')} {'is' if difference.same == 1 else 'are'} the same"


def _change(change: Change, width: int) -> list[str]:
    row, (before, after) = change.row, change.bytes
    figures = f"{_signed(change.delta):>11}{show_bytes(before):>12}{show_bytes(after):>12}"
    counts = " to ".join(map(str, dict.fromkeys(filter(None, change.counts))))
    over = f" over {','.join(row.axes)}" if row.axes else ""
    back = ", backward" if row.direction == "backward" and not row.array.startswith("backward") else ""
    array = f": {row.array}" if row.array else ""
    kind = "" if change.kind == CHANGED else f"{change.kind}: "
    words = f"{kind}{_line(change)} {counts} x {row.kind}{over}{back}{array}".replace("- ", "", row.where == "-")
    return wrapped(words, width, f"{figures}  ", " " * (len(figures) + 2))


def _line(change: Change) -> str:
    if change.kind == MOVED and change.before and change.after and change.before.where != change.after.where:
        return f"{change.before.where} to {change.after.where}"
    return change.row.where


def _memory(one: Collectives) -> str:
    return "-" if one.memory is None else show_bytes(one.memory)


def _signed(size: int) -> str:
    return f"{'+' if size >= 0 else '-'}{show_bytes(abs(size))}"


def _cells(change: Change) -> tuple[str, ...]:
    before, after = map(show_bytes, change.bytes)
    row = change.row
    kinds = (change.kind, _signed(change.delta), before, after, row.kind, ", ".join(row.axes))
    return (*kinds, _line(change), row.array)
