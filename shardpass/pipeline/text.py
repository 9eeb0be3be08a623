"""MLIR's textual pipeline syntax: ``builtin.module(a,func.func(b),c{first=1 second=true})``.

    pipeline ::= element (',' element)*
    element  ::= name                      -- a pass
               | name '{' options '}'      -- a pass with options
               | name '(' pipeline? ')'    -- an anchor: the passes inside run on each op of that name
    options  ::= (key ('=' value)?)*       -- separated by spaces; a bare key means true
    value    ::= word | '"' text '"' | "'" text "'" | '{' text '}'

Anchors nest ``MOST_NESTED`` deep at most. Spaces are free around every element. The text between the braces is kept,
since only the pass knows its options. Every element has its offset, so that errors can point at it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from shardpass.diagnostics import Place, ShardpassError
from shardpass.diagnostics.table_driver import PIPELINE_SYNTAX

MOST_NESTED = 100  # anchors in one another: the parser calls itself for each
_CLOSING = {"{": "}", "(": ")", "[": "]"}
_QUOTES = "\"'"
_NAME = re.compile(r"[^\s,{}()]+")
_NOT_TEXT = re.compile(r"[\0\ud800-\udfff]")  # Python's stand-ins for bytes of the command line that are no UTF-8
_SPACE = re.compile(r"\s*")
_KEY = re.compile(r"[^\s={}()\"']+")


@dataclass(frozen=True, slots=True)
class Element:
    """One pass (``children`` is None) or one anchor with the passes nested in it."""

    name: str
    offset: int  # of the name, in the pipeline's text
    options: str | None = None  # what stands between the braces; None without braces
    options_offset: int = 0
    children: tuple[Element, ...] | None = None

    def __str__(self) -> str:
        if self.children is not None:
            return f"{self.name}({','.join(map(str, self.children))})"
        return self.name if self.options is None else f"{self.name}{{{self.options}}}"

    def passes(self) -> Iterator[Element]:
        """List the passes of the element, including itself if it is a pass."""
        if self.children is None:
            yield self
        for child in self.children or ():
            yield from child.passes()


@dataclass(frozen=True, slots=True)
class OptionText:
    """One ``key=value`` as written; ``value`` is None for a key without a value."""

    key: str
    value: str | None
    offset: int  # of the key, in the pipeline's text


def place_in(text: str, offset: int) -> tuple[Place, str]:
    """Return the position of ``offset`` in the pipeline ``text``, and the text with a caret below it."""
    shown = re.sub(r"\s", " ", text)
    start = max(0, offset - 90)
    return Place("<pipeline>", 1, offset + 1), f"{shown[start : start + 110]}\n{' ' * (offset - start)}^"


def syntax_error(text: str, offset: int, expected: str) -> ShardpassError:
    place, excerpt = place_in(text, offset)
    actual = f"'{text[offset]}'" if offset < len(text) else "the end of the pipeline"
    return PIPELINE_SYNTAX.error(place, excerpt=excerpt, expected=expected, found=actual)


def parse(text: str) -> tuple[Element, ...]:
    """Parse the elements of ``text``; none for blank text. Raises ShardpassError (SP103) with a caret."""
    torn = _NOT_TEXT.search(text)
    if torn is not None:
        raise syntax_error(text, torn.start(), "UTF-8")
    elements, end = _pipeline(text, 0)
    if end < len(text):
        raise syntax_error(text, end, "',' or the end")
    return elements


def _pipeline(text: str, at: int, depth: int = 0) -> tuple[tuple[Element, ...], int]:
    at = _skip(text, at)
    if at == len(text) or text[at] == ")":
        return (), at
    elements = []
    while True:
        element, at = _element(text, at, depth)
        elements.append(element)
        at = _skip(text, at)
        if at == len(text) or text[at] != ",":
            return tuple(elements), at
        at = _skip(text, at + 1)


def _element(text: str, at: int, depth: int) -> tuple[Element, int]:
    match = _NAME.match(text, at)
    if match is None:
        raise syntax_error(text, at, "the name of a pass or an operation")
    name, end = match[0], _skip(text, match.end())
    if text[end : end + 1] == "{":
        close = _closing(text, end)
        return Element(name, at, text[end + 1 : close], end + 1), close + 1
    if text[end : end + 1] == "(":
        if depth == MOST_NESTED:
            raise syntax_error(text, end, f"at most {MOST_NESTED} anchors in one another")
        children, close = _pipeline(text, end + 1, depth + 1)
        if text[close : close + 1] != ")":
            raise syntax_error(text, close, "',' or ')'")
        return Element(name, at, children=children), close + 1
    return Element(name, at), end


def _skip(text: str, at: int) -> int:
    match = _SPACE.match(text, at)
    return match.end() if match else at


def _closing(text: str, at: int) -> int:
    """Return the offset of the bracket that matches the bracket at ``at``, skipping nested brackets and quotes."""
    wanted = [_CLOSING[text[at]]]
    position = at + 1
    while position < len(text):
        c = text[position]
        if c in _QUOTES:
            position = _end_of_quote(text, position)
        elif c == wanted[-1]:
            wanted.pop()
            if not wanted:
                return position
        elif c in "{([":
            wanted.append(_CLOSING[c])
        position += 1
    raise syntax_error(text, len(text), f"'{wanted[-1]}' to close the '{text[at]}' at column {at + 1}")


def _end_of_quote(text: str, at: int) -> int:
    position = at + 1
    while position < len(text) and text[position] != text[at]:
        position += 2 if text[position] == "\\" else 1
    if position >= len(text):
        raise syntax_error(text, len(text), f"{text[at]} to close the one at column {at + 1}")
    return position


def split_options(options: str, text: str = "", offset: int = 0) -> tuple[OptionText, ...]:
    """Parse the options in ``options``, which stood between braces at ``offset`` of the pipeline ``text``.

    Raises ShardpassError (SP103).
    """
    text = text or options
    out = []
    end = offset + len(options)
    at = _skip(text, offset)
    while at < end:
        match = _KEY.match(text, at)
        if match is None:
            raise syntax_error(text, at, "the name of an option")
        key, start = match[0], at
        at, value = match.end(), None
        if text[at : at + 1] == "=":
            value, at = _value(text, at + 1, end)
        out.append(OptionText(key, value, start))
        at = _skip(text, at)
    return tuple(out)


def _value(text: str, at: int, end: int) -> tuple[str, int]:
    first = text[at : at + 1]
    if first and first in _QUOTES:
        close = _end_of_quote(text, at)
        return re.sub(r"\\(.)", r"\1", text[at + 1 : close]), close + 1
    if first == "{":
        close = _closing(text, at)
        return text[at + 1 : close], close + 1
    start = at
    while at < end and not text[at].isspace():
        at = _closing(text, at) + 1 if text[at] in "{([" else at + 1
    return text[start:at], at
