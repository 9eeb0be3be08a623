"""Diagnostics: codes, places, and the one exception type that users may see.

A *code* has a stable id, a severity, a message template and a remedy. Every error, warning and remark that
shardpass gives is made from a code, so the wording has one place, ``messages.ini``, from which ``docs/diagnostics.md``
is generated. The ``table_*.py`` files beside this one give the codes of a series by their names.

Two ways to use a row:

* ``raise CODE.error(where, **values)`` where the work cannot go on;
* ``report(CODE.at(where, **values))`` to note it and go on. Reports go to the innermost ``collect()``
  block, or to stderr where there is none.
"""

from __future__ import annotations

import enum
import re
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from functools import cache
from importlib.resources import files

from shardpass.diagnostics.printable import on_one_line, printable


class Severity(enum.StrEnum):
    ERROR = "error"
    WARNING = "warning"
    REMARK = "remark"
    NOTE = "note"


@dataclass(frozen=True, slots=True)
class Place:
    """A place in the user's text. Lines and columns count from 1; 0 means unknown."""

    file: str = ""
    line: int = 0
    column: int = 0

    def __str__(self) -> str:
        parts = [on_one_line(self.file) or "<unknown>"]
        if self.line:
            parts.append(str(self.line))
            if self.column:
                parts.append(str(self.column))
        return ":".join(parts)


NOWHERE = Place()


@dataclass(frozen=True, slots=True)
class Diagnostic:
    """A diagnostic: the message, its place, its reason and the remedy."""

    severity: Severity
    code: str
    message: str
    place: Place = NOWHERE
    remedy: str = ""
    excerpt: str = ""  # source text with a caret under the fault, possibly several lines
    notes: tuple[Diagnostic, ...] = ()

    def __str__(self) -> str:
        where = f"{self.place}: " if self.place != NOWHERE else ""
        tag = f" [{self.code}]" if self.code else ""
        lines = [f"{where}{self.severity}: {on_one_line(self.message)}{tag}"]
        if self.excerpt:
            lines += ["    " + row for row in self.excerpt.splitlines()]
        if self.remedy:
            lines.append(f"    help: {on_one_line(self.remedy)}")
        lines += ["  " + row for note in self.notes for row in str(note).splitlines()]
        return printable("\n".join(lines))


class ShardpassError(Exception):
    """The exception for bad input. ``diagnostics``: all diagnostics, most important first."""

    def __init__(self, *diagnostics: Diagnostic) -> None:
        self.diagnostics = diagnostics
        super().__init__("\n".join(map(str, diagnostics)))

    @property
    def code(self) -> str:
        return self.diagnostics[0].code if self.diagnostics else ""


@dataclass(frozen=True, slots=True)
class Code:
    """A row of the diagnostics table. ``message`` and ``remedy`` are ``str.format`` templates."""

    id: str
    message: str
    remedy: str = ""
    severity: Severity = Severity.ERROR
    explanation: str = ""  # for docs/diagnostics.md: when it arises, an example
    exception: type[ShardpassError] = field(default=ShardpassError)

    def at(
        self,
        place: Place = NOWHERE,
        *,
        excerpt: str = "",
        notes: tuple[Diagnostic, ...] = (),
        **values: object,
    ) -> Diagnostic:
        return Diagnostic(
            self.severity,
            self.id,
            self.message.format(**values),
            place,
            self.remedy.format(**values),
            excerpt,
            notes,
        )

    def error(
        self,
        place: Place = NOWHERE,
        *,
        excerpt: str = "",
        notes: tuple[Diagnostic, ...] = (),
        **values: object,
    ) -> ShardpassError:
        return self.exception(self.at(place, excerpt=excerpt, notes=notes, **values))


@dataclass(frozen=True, slots=True)
class _Section:
    """A section of ``messages.ini``: the name of a code, and its texts by key."""

    name: str
    texts: dict[str, str]


@cache
def _sections() -> dict[str, _Section]:
    """Read the sections of ``messages.ini``, by id."""
    text = (files("shardpass.diagnostics") / "messages.ini").read_text().replace("\n    ", " ")
    rows = re.findall(r"^\[(SP\d{3}) (\w+)\]\n((?:\w+ = .+\n)+)", text, re.MULTILINE)
    return {id: _Section(name, dict(re.findall(r"^(\w+) = (.+)$", row, re.MULTILINE))) for id, name, row in rows}


def codes() -> tuple[Code, ...]:
    """Return every code, sorted by id."""
    return tuple(map(_code, sorted(_sections())))


@cache
def named(name: str, series: str, exception: Callable[[str], type[ShardpassError]] = lambda id: ShardpassError) -> Code:
    """Return the code ``name`` of a series: ``series`` lists the digits that follow SP in its ids.

    ``exception``: the class of the errors of a code, by id. Raises AttributeError for an unknown name, as the
    ``__getattr__`` of a table must.
    """
    for id, section in _sections().items():
        if section.name == name and id[2] in series:
            return _code(id, exception(id))
    raise AttributeError(f"messages.ini has no code {name} in SP{series}xx")


def _code(id: str, exception: type[ShardpassError] = ShardpassError) -> Code:
    texts = _sections()[id].texts
    severity = Severity(texts.get("severity", Severity.ERROR))
    return Code(id, texts["message"], texts["remedy"], severity, texts["explanation"], exception)


def note(message: str, place: Place = NOWHERE) -> Diagnostic:
    """Make a note to attach to another diagnostic."""
    return Diagnostic(Severity.NOTE, "", message, place)


_sink: ContextVar[list[Diagnostic] | None] = ContextVar("shardpass_diagnostics", default=None)


def report(diagnostic: Diagnostic) -> None:
    """Pass ``diagnostic`` to the innermost ``collect()``, or print the diagnostic on stderr."""
    sink = _sink.get()
    if sink is None:
        print(diagnostic, file=sys.stderr)
    else:
        sink.append(diagnostic)


@contextmanager
def collect() -> Iterator[list[Diagnostic]]:
    """Collect the reports inside the block, in order."""
    collected: list[Diagnostic] = []
    token = _sink.set(collected)
    try:
        yield collected
    finally:
        _sink.reset(token)
