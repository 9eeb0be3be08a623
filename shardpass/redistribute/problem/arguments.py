"""The arguments of ``plan_redistribution`` as people give them, brought to the forms that the planner takes.

A sharding may be a ``Sharding``, its text, or JAX's ``NamedSharding``; an element type its name, or anything that NumPy
takes for a dtype (``jnp.bfloat16``, ``np.dtype("float32")``); sizes and counts anything that is a whole number. What is
something else is refused by the name of the argument, before any of it is looked at.
"""

from __future__ import annotations

import operator
from typing import Any

import numpy as np

from shardpass.diagnostics import table_redistribute as table
from shardpass.element_types import ELEMENT_TYPES
from shardpass.sharding import Sharding, TupleSharding
from shardpass.sharding.notations.partition_spec import from_named_sharding, is_named_sharding


def shape_of(given: Any) -> tuple[int, ...]:
    """Raises ShardpassError (SP406)."""
    if isinstance(given, str | bytes) or not hasattr(given, "__iter__"):
        raise table.SHAPE.error(text=_shown(given), reason="it is no sequence of sizes")
    sizes = []
    for size in given:
        number = _whole(size)
        if number is None:
            raise table.SHAPE.error(text=_shown(tuple(given)), reason=f"{size!r} is not a size")
        sizes.append(number)
    return tuple(sizes)


def element_name_of(given: Any) -> str:
    """Raises ShardpassError (SP405) for what is neither a name nor a dtype; a name is looked up later."""
    if isinstance(given, str):
        return given
    known = ", ".join(row.mlir for row in ELEMENT_TYPES)
    try:
        dtype = None if given is None else np.dtype(given)
    except TypeError:
        dtype = None
    found = next((row.mlir for row in ELEMENT_TYPES if dtype is not None and row.dtype == dtype), None)
    if found is None:
        raise table.ELEMENT_TYPE.error(name=_shown(given), known=known)
    return found


def sharding_of(given: Any, side: str, rank: int) -> Sharding | TupleSharding | str:
    """Raises ShardpassError (SP415)."""
    if isinstance(given, Sharding | TupleSharding | str):
        return given
    if is_named_sharding(given):
        return from_named_sharding(given, rank)
    raise table.NOT_A_SHARDING.error(side=side, given=_shown(given))


def count_of(given: Any) -> int | None:
    """Raises ShardpassError (SP416)."""
    number = None if given is None else _whole(given)
    if given is not None and (number is None or number < 1):
        raise table.DEVICE_COUNT.error(given=_shown(repr(given)))
    return number


def _whole(value: Any) -> int | None:
    if isinstance(value, bool | np.bool_):
        return None
    try:
        return operator.index(value)
    except TypeError:
        return None


def _shown(value: Any) -> str:
    text = value if isinstance(value, str) else repr(value)
    return text if len(text) <= 60 else f"{text[:60]}..."
