"""From MLIR locations to places in the user's text.

The bindings give a location no accessors (jaxlib 0.10.2), so its printed form is read.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Any

from shardpass.diagnostics import NOWHERE, Place

_FILE = re.compile(r'"((?:[^"\\]|\\.)*)":(\d+):(\d+)')


@lru_cache(maxsize=65536)
def _read(text: str) -> Place:
    found = _FILE.search(text)
    if found is None:
        return NOWHERE
    return Place(found[1], int(found[2]), int(found[3]))


def place_of(location: Any) -> Place:
    """The innermost file:line:column of an ``ir.Location`` (callsites: the callee); NOWHERE if none."""
    return _read(str(location))
