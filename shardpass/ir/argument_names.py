"""Find names of main's arguments in locations from JAX, TensorFlow and hand-written text.

JAX writes the path, ``params['layers'][0]['w1']``; TensorFlow calls all arguments ``XLA_Args``. Names that several
arguments have are followed by the argument's place: ``XLA_Args 3``.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence

from shardpass.sharding.quoting import mlir_unquoted

_NAMED = re.compile(r'loc\("((?:[^"\\]|\\.)*)"(?!:\d)')


def argument_names(locations: Sequence[str]) -> list[str]:
    """Return a name for each of ``locations``, as text; "" where the location has none."""
    names = [mlir_unquoted(match[1]) if (match := _NAMED.match(location)) else "" for location in locations]
    times = Counter(names)
    return [f"{name} {place}" if name and times[name] > 1 else name for place, name in enumerate(names)]
