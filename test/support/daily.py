"""Draw another part of a long sweep each day.

The seed is the day, or SHARDPASS_TEST_SEED, and the header of a session prints it. With SHARDPASS_TEST_WHOLE=1, as in
``make nightly``, sweeps are whole.
"""

from __future__ import annotations

import datetime
import os
import random
from collections.abc import Sequence
from typing import TypeVar

SEED, WHOLE = "SHARDPASS_TEST_SEED", "SHARDPASS_TEST_WHOLE"
QUICK = "--xla_backend_optimization_level=0"  # the machine code is slow; collectives, memory and numbers are the same
T = TypeVar("T")


def seed() -> int:
    """Returns the seed of this session; the processes that it starts inherit it."""
    given = os.environ.setdefault(SEED, str(datetime.datetime.now(datetime.UTC).date().toordinal()))
    return int(given)


def is_whole() -> bool:
    """Returns whether this session runs sweeps whole."""
    return os.environ.get(WHOLE) == "1"


def drawn(cases: Sequence[T], count: int) -> list[T]:
    """Returns ``count`` of ``cases`` in their order, others each day; all where the session is whole."""
    if is_whole() or len(cases) <= count:
        return list(cases)
    places = random.Random(seed()).sample(range(len(cases)), count)
    return [cases[place] for place in sorted(places)]


def scaled(count: int, part: int = 4) -> int:
    """Returns a ``part``-th of ``count``, and all of it where the session is whole."""
    return count if is_whole() else max(1, count // part)


def xla_flags() -> str:
    """Returns XLA_FLAGS by which programs compile in half the time; as they are given where the session is whole."""
    given = os.environ.get("XLA_FLAGS", "")
    return given if is_whole() or QUICK in given else f"{given} {QUICK}".strip()
