"""Complete locations of a module that was parsed from the user's text: each names the user's file and a line.

MLIR's parser calls every text "-", and keeps any location that the text spells out: JAX gives main's arguments a name
and no line, and functions nothing. So, after parsing,

1. a location that the parser made up gets the file's name;
2. one that the text spells out is kept as it is when it names a line of some file (the user's Python), and
   otherwise gets the line at which the op or the argument stands. That line comes from parsing the text
   once more with every ``loc(...)`` blanked: positions stay, and the parser makes all locations up;
3. an op of case 2 without a line stays so in a function whose own location names a line, and in a private one whose own
   location is spelled out and names none. JAX writes both for functions of libraries: the first has the line of the
   user's call, the second is called by the first. The ops get that line as they are inlined.

Cost: one walk; a second parse and walk where case 2 needs it. The large constants of the text are left out of it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from jaxlib.mlir import ir

from shardpass.diagnostics import NOWHERE
from shardpass.ir.locations import place_of

_PARSED = re.compile(r'loc\("-":(\d+):(\d+)\)')
_NAME = re.compile(r'loc\(("(?:[^"\\]|\\.)*")[()]')  # of an op, also above calls that have names and no lines
_STRING = r'"(?:[^"\\\n]++|\\.)*+"'  # possessive: the elements of a constant may be a string of 2 GiB
# a string, a comment, or the start of a location with the alias that it may define
_SPELLED = re.compile(rf"{_STRING}|//[^\n]*|(?:#[\w$.-]+\s*=\s*)?(?<![\w@%.$#-])loc\(")
# the elements of a constant behind which its line has no other op, so that all ops stay where they are
_ELEMENTS = re.compile(rb'dense<"0x[0-9A-Fa-f]{4096,}+">(?=[^\n%]*+(?:\n|\Z))')
_ELIDED = b"dense_resource<__elided__>"  # as MLIR itself says that it left elements out
_BRACKET = re.compile(rf"{_STRING}|[()]")
_NOT_NEWLINE = re.compile(r"[^\n]")


def name_locations(module: Any, text: bytes, filename: str, offset: int) -> None:
    """Give every op and argument of ``module``, parsed from ``text``, a location with a file and a line.

    ``filename`` names the text; ``offset``: the lines of the file before the text.
    """
    places = _Places(filename, offset, module.context)
    vague = []
    placed_by_calls = False
    for index, (thing, location) in enumerate(located(module)):
        text_of = str(location)  # a stack of calls is long: print it once
        is_function = isinstance(thing, ir.Operation) and thing.name == "func.func"
        if is_function:
            spelled = _PARSED.fullmatch(text_of) is None
            placed_by_calls = spelled and (place_of(text_of) != NOWHERE or _is_private(thing))
        named = places.named(text_of)
        if named is not None:
            _set(thing, named)
        elif place_of(text_of) == NOWHERE and (is_function or not placed_by_calls):
            vague.append((index, thing, text_of))
    if not vague:
        return
    bare = _parse(without_locations(_ELEMENTS.sub(_ELIDED, text).decode()))
    if bare is None:  # some constant must have its elements
        bare = _parse(without_locations(text.decode()))
    if bare is None:
        return
    positions = [str(location) for _, location in located(bare)]
    for index, thing, text_of in vague:
        place = places.named(positions[index])
        if place is not None:
            _set(thing, places.completed(text_of, place))


def without_locations(text: str) -> str:
    """Replace every location of ``text`` by spaces, so that the rest keeps its position."""
    parts, at = [], 0
    for match in _SPELLED.finditer(text):
        if match.start() >= at and match[0].endswith("loc("):
            end = _closing(text, match.end())
            parts += [text[at : match.start()], _NOT_NEWLINE.sub(" ", text[match.start() : end])]
            at = end
    return "".join([*parts, text[at:]])


def _closing(text: str, at: int) -> int:
    """Return the offset after the parenthesis that closes the one before ``at``, or the text's end."""
    depth = 1
    for token in _BRACKET.finditer(text, at):
        depth += {"(": 1, ")": -1}.get(token[0], 0)
        if depth == 0:
            return token.end()
    return len(text)


def _parse(text: str) -> Any:
    """Parse the module; None if removing locations broke the text (a location as an attribute's value)."""
    try:
        return ir.Module.parse(text)
    except ir.MLIRError:
        return None


def _is_private(function: Any) -> bool:
    return "sym_visibility" in function.attributes and "private" in str(function.attributes["sym_visibility"])


def located(module: Any) -> Iterator[tuple[Any, Any]]:
    """Yield (op or argument, its location) for all of ``module``, in the order of its text."""
    stack = [module.operation]
    while stack:
        operation = stack.pop()
        yield operation, operation.location
        inner = []
        for region in operation.regions:
            for block in region:
                for argument in block.arguments:
                    yield argument, argument.location
                inner += [view.operation for view in block.operations]
        stack += reversed(inner)


def _set(thing: Any, location: Any) -> None:
    if isinstance(thing, ir.BlockArgument):
        thing.set_location(location)
    else:
        thing.location = location


class _Places:
    """Creates locations in one file, each once."""

    def __init__(self, filename: str, offset: int, context: Any) -> None:
        self.filename, self.offset, self.context = filename, offset, context
        self._known: dict[str, Any] = {}

    def named(self, location: str) -> Any:
        """Return a location that the parser generated, with the file's name; None for one in the text."""
        if location not in self._known:
            match = _PARSED.fullmatch(location)
            self._known[location] = match and self._at(int(match[1]), int(match[2]))
        return self._known[location]

    def _at(self, line: int, column: int) -> Any:
        line += self.offset if line else 0  # line 0: the module that the parser put around the text
        return ir.Location.file(self.filename, line, column, self.context)

    def completed(self, location: str, place: Any) -> Any:
        """Return ``place`` with the name in ``location``, a printed location, if any."""
        name = _NAME.match(location)
        if name is None:
            return place
        return ir.Location.name(ir.Attribute.parse(name[1], self.context).value, place, self.context)
