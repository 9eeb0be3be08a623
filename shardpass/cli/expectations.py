"""``--verify-diagnostics``: compare diagnostics with comments in the module.

    // expected-error {{text}}            on this line
    // expected-warning@+1 {{text}}       on the next line; also @-1, @above, @below
    // expected-remark@unknown {{text}}   at no place in this file
    // expected-error-re {{rank {{[0-9]+}}}}   nested braces contain regular expressions

As in mlir-opt: ``@above`` and ``@below`` mean the nearest line in that direction without an expectation
itself; the text is looked for in the message (to which shardpass's code is added, as in ``[SP202]``);
each expectation takes one diagnostic; every diagnostic, notes included, must be expected. Only MLIR's
own note "see current operation" may come unasked.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from shardpass.diagnostics import Diagnostic, Place, Severity
from shardpass.diagnostics.table_driver import BAD_EXPECTATION, NOT_EXPECTED, NOT_PRODUCED

_START = re.compile(r"expected-(?P<severity>error|warning|remark|note)(?P<re>-re)?(?![\w-])")
_REST = re.compile(r"\s*(?:@(?P<at>[+-]\d+|above|below|unknown))?\s*\{\{(?P<text>.*)\}\}\s*$")


@dataclass(frozen=True, slots=True)
class Expectation:
    severity: Severity
    line: int  # of the diagnostic; 0 for @unknown
    text: str
    pattern: re.Pattern[str]
    place: Place  # of the comment

    def takes(self, printed: Diagnostic, file: str) -> bool:
        """Return whether this comment, which is in ``file``, expects the diagnostic."""
        line = printed.place.line if printed.place.file == file else 0
        same_place = printed.severity is self.severity and line == self.line
        return same_place and self.pattern.search(_shown(printed)) is not None


def _shown(printed: Diagnostic) -> str:
    return f"{printed.message} [{printed.code}]" if printed.code else printed.message


def read_expectations(text: str, file: str, first_line: int = 1) -> list[Expectation]:
    """Read the expectations in the comments of ``text``, which starts at ``first_line`` of ``file``.

    Raises ShardpassError (SP132) for a malformed expectation.
    """
    lines = text.split("\n")
    marked = [i for i, line in enumerate(lines) if _START.search(_comment(line))]
    expectations = []
    for index in marked:
        comment = _comment(lines[index])
        start = _START.search(comment)
        assert start is not None  # that is how it was marked
        column = len(lines[index]) - len(comment) + start.start() + 1
        place = Place(file, first_line + index, column)
        rest = _REST.match(comment, start.end())
        if rest is None:
            raise BAD_EXPECTATION.error(place, reason="it must end with {{text}}")
        line = _line(rest["at"], index, set(marked), len(lines))
        if line is None:
            raise BAD_EXPECTATION.error(place, reason=f"there is no line {rest['at']}")
        expectations.append(
            Expectation(
                Severity(start["severity"]),
                0 if rest["at"] == "unknown" else first_line + line,
                rest["text"],
                _pattern(rest["text"], bool(start["re"]), place),
                place,
            )
        )
    return expectations


def _comment(line: str) -> str:
    return line[line.index("//") :] if "//" in line else ""


def _line(at: str | None, index: int, marked: set[int], count: int) -> int | None:
    """Return the index of the line that ``at`` means, seen from the comment on line ``index``."""
    if at is None or at == "unknown":
        return index
    if at in ("above", "below"):
        step = -1 if at == "above" else 1
        line = index + step
        while line in marked:
            line += step
    else:
        line = index + int(at)
    return line if 0 <= line < count else None


def _pattern(text: str, is_regex: bool, place: Place) -> re.Pattern[str]:
    if not is_regex:
        return re.compile(re.escape(text))
    parts = re.split(r"\{\{(.*?)\}\}", text)
    try:
        return re.compile("".join(f"(?:{p})" if i % 2 else re.escape(p) for i, p in enumerate(parts)))
    except re.error as error:
        raise BAD_EXPECTATION.error(place, reason=f"its regular expression is wrong: {error}") from None


def compare(expected: Sequence[Expectation], diagnostics: Sequence[Diagnostic], file: str) -> list[Diagnostic]:
    """Report unexpected diagnostics and unmet expectations; empty if all agree."""
    left = list(expected)
    complaints = []
    for diagnostic in _flat(diagnostics):
        match = next((e for e in left if e.takes(diagnostic, file)), None)
        if match is not None:
            left.remove(match)
        elif not diagnostic.message.startswith("see current operation"):
            complaints.append(
                NOT_EXPECTED.at(diagnostic.place, severity=diagnostic.severity, message=_shown(diagnostic))
            )
    complaints += [NOT_PRODUCED.at(e.place, severity=e.severity, message=e.text) for e in left]
    return complaints


def _flat(diagnostics: Sequence[Diagnostic]) -> Iterator[Diagnostic]:
    for diagnostic in diagnostics:
        yield diagnostic
        yield from _flat(diagnostic.notes)
