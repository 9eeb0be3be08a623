"""Where functions and their arguments stand in MLIR text.

JAX gives main's arguments a name for a location and functions none at all, so MLIR cannot say where the
annotation of an argument stands. The text can.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

_FUNCTION = re.compile(
    r"\bfunc\.func\s+(?:(?:public|private|nested)\s+)?@(?:\"((?:[^\"\\]|\\.)*)\"|([\w$.-]+))\s*(?=\()"
)
_TOKEN = re.compile(r"\"(?:[^\"\\]|\\.)*\"|//[^\n]*|%[\w$.-]+(?=\s*:)|[()]")


@dataclass(frozen=True, slots=True)
class Signature:
    """(line, column) of a function and of each of its arguments, counted from 1."""

    function: tuple[int, int]
    arguments: tuple[tuple[int, int], ...]


def signatures(text: str) -> dict[str, Signature]:
    """The functions of ``text``, which is valid MLIR, by name; the first where several modules use one name."""
    found: dict[str, Signature] = {}
    for match in _FUNCTION.finditer(text):
        name = match[1] if match[1] is not None else match[2]
        if name not in found:
            places = tuple(_position(text, offset) for offset in _arguments(text, match.end()))
            found[name] = Signature(_position(text, match.start()), places)
    return found


def _arguments(text: str, at: int) -> Iterator[int]:
    """Offsets of the arguments in the parentheses that open at ``at``; strings and comments hold none."""
    depth = 0
    for token in _TOKEN.finditer(text, at):
        if token[0] == "(":
            depth += 1
        elif token[0] == ")":
            depth -= 1
            if depth == 0:
                return
        elif token[0].startswith("%") and depth == 1:
            yield token.start()


def _position(text: str, offset: int) -> tuple[int, int]:
    line_start = text.rfind("\n", 0, offset) + 1
    return text.count("\n", 0, offset) + 1, len(text[line_start:offset].encode()) + 1
