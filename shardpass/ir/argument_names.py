"""What the user calls arguments of main: the names in their locations, as JAX, TensorFlow and people write them.

JAX writes the path, ``params['layers'][0]['w1']``; TensorFlow calls all arguments ``XLA_Args``. Names that several
arguments have are followed by the argument's place: ``XLA_Args 3``.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence

_NAMED = re.compile(r'loc\("((?:[^"\\]|\\.)*)"(?!:\d)')
_ESCAPE = re.compile(rb"\\(\\|[0-9A-Fa-f]{2})")


def argument_names(locations: Sequence[str]) -> list[str]:
    """A name for each of ``locations``, as text; "" where the location has none."""
    names = [unescaped(found[1]) if (found := _NAMED.match(location)) else "" for location in locations]
    times = Counter(names)
    return [f"{name} {place}" if name and times[name] > 1 else name for place, name in enumerate(names)]


def unescaped(text: str) -> str:
    """The string that MLIR prints as ``text``: bytes that are no printable ASCII are ``\\0A`` and the like there."""
    if "\\" not in text:
        return text
    raw = _ESCAPE.sub(lambda found: b"\\" if found[1] == b"\\" else bytes([int(found[1], 16)]), text.encode())
    return raw.decode("utf-8", "replace")
