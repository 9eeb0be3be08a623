"""Compare collectives with what a test expects, and print the differences as a table.

An expectation has five independent parts; each violation is a row of the table:

    expect          {key: count}: exactly so many arrays are moved by these collectives
    never           keys that must not occur
    at_most         bytes that a device may receive in one run
    memory_at_most  bytes that a device may need
    only_at         lines or functions at which collectives may occur

A key is a kind, "all_gather", for any axes, or (kind, axes), where axes is a name or a tuple of names in any order. In
``expect`` the axes must be equal. In ``never`` it is enough that a collective works over all of the named axes: an
all_gather over ("data", "model") gathers over "model", too.

Complexity: O(rows * expectations).
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import Any

from shardpass.cost.collective import FACTS
from shardpass.diagnostics import NOWHERE, Place
from shardpass.diagnostics.arguments import wrong_argument
from shardpass.redistribute.terms.limit import read_limit
from shardpass.report.collectives import Collective, Collectives
from shardpass.report.text import counted, show_apart, show_bytes, wrapped

KINDS = tuple(sorted(FACTS))
MOST_ROWS = 12  # collectives that are listed below a violation
_WIDTH = 110
_AT = re.compile(r"(?P<file>[^:]*)(?::(?P<what>[^:]+))?")


@dataclass(frozen=True, slots=True)
class Wanted:
    """A key of ``expect`` or ``never``. ``axes`` None: any axes."""

    kind: str
    axes: frozenset[str] | None = None

    def __str__(self) -> str:
        over = "" if self.axes is None else f" over {', '.join(sorted(self.axes)) or 'no axis'}"
        return f"{self.kind}{over}"

    def equals(self, row: Collective) -> bool:
        """Return whether ``row`` has this kind and exactly these axes."""
        return row.kind == self.kind and (self.axes is None or self.axes == set(row.axes))

    def covers(self, row: Collective) -> bool:
        """Return whether ``row`` has this kind and works over at least these axes."""
        return row.kind == self.kind and (self.axes is None or self.axes <= set(row.axes))


@dataclass(frozen=True, slots=True)
class Expectation:
    """The requirements of a test; the module's docstring describes the parts."""

    expect: Mapping[Wanted, int]
    never: tuple[Wanted, ...] = ()
    at_most: int | None = None
    memory_at_most: int | None = None
    only_at: tuple[str, ...] | None = None


@dataclass(frozen=True, slots=True)
class Violation:
    """A violated part of an expectation.

    Attributes:
        what: "all_gather over model", "bytes received", "memory of a device", or "a collective elsewhere".
        expected, got: the expected and actual values as text.
        rows: the violating collectives, most bytes first.
    """

    what: str
    expected: str
    got: str
    rows: tuple[Collective, ...] = ()

    @property
    def place(self) -> Place:
        """The line of the collective with the most bytes; NOWHERE if unknown."""
        return next((row.place for row in self.rows if row.file), NOWHERE)


class CollectivesError(AssertionError):
    """The collectives of a program differ from the expectation.

    Attributes:
        violations: the violated parts of the expectation.
        collectives: the collectives of the program.
    """

    def __init__(
        self, collectives: Collectives, violations: tuple[Violation, ...], note: str = "", causes: Sequence[str] = ()
    ) -> None:
        title = f"the collectives of {collectives.name} are not as expected"
        shown = table(collectives, violations, title, causes)
        super().__init__("\n".join([*shown, *(["", note] if note else [])]))
        self.collectives, self.violations = collectives, violations


def read_expectation(
    expect: Any, never: Any, at_most: Any, memory_at_most: Any, only_at: Any, function: str = "assert_collectives"
) -> Expectation:
    """Check the arguments of ``assert_collectives``.

    Raises:
        ShardpassError: SP140 for an argument of another form, with the form that is wanted.
    """
    if expect is not None and not isinstance(expect, Mapping):
        raise wrong_argument(function, "expect", expect, 'a dictionary such as {("all_gather", ("model",)): 2}')
    counts = {read_wanted(key, function, "expect"): count for key, count in (expect or {}).items()}
    for count in counts.values():
        if type(count) is not int or count < 0:
            raise wrong_argument(function, "expect", count, "a number of arrays, 0 or more, for each collective")
    keys = () if never is None else (never,) if isinstance(never, str) else tuple(never)
    if len(keys) == 2 and keys[0] in KINDS and keys[1] not in KINDS and not _is_key(keys[1]):
        keys = (keys,)  # one pair instead of a list of pairs
    wanted = tuple(read_wanted(key, function, "never") for key in keys)
    places = None if only_at is None else (only_at,) if isinstance(only_at, str) else tuple(map(str, only_at))
    return Expectation(counts, wanted, _size(at_most), _size(memory_at_most), places)


def read_wanted(key: Any, function: str, argument: str) -> Wanted:
    """Read a kind, or a pair of kind and axes.

    Raises:
        ShardpassError: SP140.
    """
    kind, axes = (key, None) if isinstance(key, str) else tuple(key) if _is_key(key) else ("", None)
    if kind not in KINDS:
        wanted = f'a kind ({", ".join(KINDS)}) or a pair such as ("all_gather", ("model",))'
        raise wrong_argument(function, argument, key, wanted)
    if axes is None:
        return Wanted(kind)
    return Wanted(kind, frozenset((axes,) if isinstance(axes, str) else map(str, axes)))


def _is_key(key: Any) -> bool:
    return isinstance(key, tuple | list) and len(key) == 2 and isinstance(key[0], str)


def _size(given: Any) -> int | None:
    limit = read_limit(given)
    return limit if isinstance(limit, int) else None


def violations(collectives: Collectives, expectation: Expectation) -> tuple[Violation, ...]:
    """Return the parts of ``expectation`` that ``collectives`` break."""
    return tuple(_violations(collectives, expectation))


def _violations(program: Collectives, expectation: Expectation) -> Iterator[Violation]:
    for wanted, count in expectation.expect.items():
        rows = _most(row for row in program.rows if wanted.equals(row))
        if sum(row.count for row in rows) != count:
            yield Violation(str(wanted), str(count), _amount(rows), rows)
    for wanted in expectation.never:
        rows = _most(row for row in program.rows if wanted.covers(row))
        if rows:
            yield Violation(str(wanted), "never", _amount(rows), rows)
    limits = (
        ("bytes received", expectation.at_most, program.bytes_received, _most(program.rows)),
        ("memory of a device", expectation.memory_at_most, program.memory or 0, ()),
    )
    for what, limit, size, rows in limits:
        if limit is not None and size > limit:
            most, got = show_apart(limit, size)
            yield Violation(what, f"at most {most}", got, rows)
    if expectation.only_at is not None:
        places = expectation.only_at
        rows = _most(row for row in program.rows if not any(is_at(row, place) for place in places))
        if rows:
            got = counted(len({row.where for row in rows}), "other line")
            yield Violation("collectives", f"only at {', '.join(places) or 'no line'}", got, rows)


def is_at(row: Collective, place: str) -> bool:
    """Return whether a collective is at ``place``: "model.py", "model.py:41", "model.py:attention", "model.py:Model.*".

    The file may have folders in front. A function matches by its own name or with its classes, also where the line is
    in a function inside of it.
    """
    match = _AT.fullmatch(place)
    if match is None or not row.file:
        return False
    file = row.file.replace("\\", "/")
    if not (fnmatchcase(file, match["file"]) or fnmatchcase(file, f"*/{match['file']}")):
        return False
    what = match["what"]
    if what is None or what == str(row.line):
        return True
    parts = row.function.split(".")
    spans = (".".join(parts[first:last]) for last in range(1, len(parts) + 1) for first in range(last))
    return any(fnmatchcase(span, what) for span in spans)


def _amount(rows: Iterable[Collective]) -> str:
    some = tuple(rows)
    return f"{sum(row.count for row in some)} ({show_bytes(sum(row.bytes for row in some))})"


def _most(rows: Iterable[Collective]) -> tuple[Collective, ...]:
    return tuple(sorted(rows, key=lambda row: -row.bytes))


def table(program: Collectives, broken: tuple[Violation, ...], title: str, causes: Sequence[str] = ()) -> Iterator[str]:
    """Yield the lines of the table: expected, got, and the collectives with line, bytes, array and cause, each once.

    ``causes``: the annotations that differ from those of a budget.
    """
    mesh = "".join(f" {name}={size}" for name, size in program.mesh)
    memory = "" if program.memory is None else f", memory {show_bytes(program.memory)}"
    yield title
    yield (
        f"{counted(program.devices, 'device')}{mesh}, partitioner {program.partitioner}: "
        f"{show_bytes(program.bytes_received)} received{memory}"
    )
    shown: set[int] = set()
    for one in broken:
        yield f"{one.what}: expected {one.expected}, got {one.got}"
        rows = [row for row in one.rows if id(row) not in shown]
        shown.update(map(id, rows[:MOST_ROWS]))
        for row in rows[:MOST_ROWS]:
            yield from _row(row)
        if len(rows) > MOST_ROWS:
            yield f"    and {counted(len(rows) - MOST_ROWS, 'collective')} more"
    if causes:
        yield "annotations that differ from the budget:"
    for sentence in causes[:MOST_ROWS]:
        yield from wrapped(sentence, _WIDTH, "  ", "    ")
    if len(causes) > MOST_ROWS:
        yield f"  and {counted(len(causes) - MOST_ROWS, 'annotation')} more"


def _row(row: Collective) -> list[str]:
    over = f" over {', '.join(row.axes)}" if row.axes else ""
    function = f" in {row.function}" if row.function else ""
    array = f", {row.array}" if row.array else ""
    back = ", backward" if row.direction == "backward" and not row.array.startswith("backward") else ""
    words = f"{row.where}{function}: {row.count} x {row.kind}{over}{back}{array}"
    if row.reason:
        words += f" ({row.reason})"
    return wrapped(words, _WIDTH, f"  {show_bytes(row.bytes):>10}  ", " " * 14)
