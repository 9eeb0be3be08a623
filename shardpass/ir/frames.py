"""Find the user's frame of a location: the line of the user's program among the frames that JAX writes.

A location names the innermost frame first and then its callers, as far as JAX keeps them. The frame that a user can
change is the innermost that is not of a library: of an installed package, of this one, or of Python itself. Example: of
the frames

    site-packages/flax/linen/linear.py:271, site-packages/flax/linen/module.py:1216, train.py:41

it is train.py:41. Where all are of libraries, the outermost is used, which is the nearest to the user's call. The
frames inside of it, here module.py:1216 and then linear.py:271, locate the op in the library.

Cost: one search for each distinct location.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from shardpass.diagnostics import NOWHERE, Place
from shardpass.sharding.quoting import mlir_unquoted

_FRAME = re.compile(r'"((?:[^"\\]|\\.)*)":(\d+):(\d+)(?: to (?:(\d+))?:(\d+))?')
_OURS = os.path.dirname(os.path.dirname(__file__)) + os.sep
_LIBRARY = re.compile(r"[/\\](?:site|dist)-packages[/\\]|[/\\]lib[/\\]python\d[.\d]*[/\\]|^<frozen ")


@dataclass(frozen=True, slots=True)
class Frame:
    """The start and the end of an expression; ``end_line`` is 0 if the location has no end."""

    place: Place
    end_line: int = 0
    end_column: int = 0


NO_FRAME = Frame(NOWHERE)


def user_frame(location: Any) -> Frame:
    """Return the user's frame of an ``ir.Location`` or its text; NO_FRAME if the location names no line."""
    return _frames(str(location))[0]


def user_frames(location: Any) -> tuple[Frame, ...]:
    """Return the frames of an ``ir.Location`` in the user's files, innermost first."""
    return tuple(one for one in every_frame(str(location)) if not is_library(one.place.file))


def user_place(location: Any) -> Place:
    """Return the user's line of an ``ir.Location`` or its text; NOWHERE if the location names no line."""
    return _frames(str(location))[0].place


def inner_places(location: Any) -> tuple[Place, ...]:
    """Return the library lines called from the user's frame, outermost first; () if that is the innermost."""
    return _frames(str(location))[1]


def callers(location: Any) -> tuple[Place, ...]:
    """Return the user's lines that call the user's frame, nearest first, without duplicates."""
    lines = (Place(one.place.file, one.place.line) for one in user_frames(location)[1:])
    return tuple(dict.fromkeys(lines))


def is_library(file: str) -> bool:
    """Return whether ``file`` belongs to an installed package, to shardpass or to Python."""
    return _LIBRARY.search(file) is not None or file.startswith(_OURS)


@lru_cache(maxsize=65536)
def _frames(text: str) -> tuple[Frame, tuple[Place, ...]]:
    """Return the user's frame, and the lines called from there."""
    last, inner = NO_FRAME, []
    for frame in every_frame(text):
        if last is not NO_FRAME:
            inner.append(Place(last.place.file, last.place.line))
        last = frame
        if not is_library(frame.place.file):
            break
    return last, tuple(reversed(inner))


def every_frame(text: str) -> Iterator[Frame]:
    """Yield the frames of a location's text, from the innermost."""
    for match in _FRAME.finditer(text):
        file, line, column, end_line, end_column = match.groups()
        place = Place(mlir_unquoted(file), int(line), int(column))
        yield Frame(place, int(end_line or line) if end_column else 0, int(end_column or 0))
