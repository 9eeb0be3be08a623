"""Convert the arguments of ``plan_redistribution`` to the planner's types.

A sharding may be a ``Sharding``, its text, or JAX's ``NamedSharding``; an element type its name, or anything that NumPy
takes for a dtype (``jnp.bfloat16``, ``np.dtype("float32")``); sizes and counts anything that is a whole number. Other
values are refused, by the argument's name, before they are used.
"""

from __future__ import annotations

from itertools import islice
from typing import Any

import numpy as np

from shardpass.diagnostics import ShardpassError
from shardpass.diagnostics import table_redistribute as table
from shardpass.diagnostics.arguments import shown, whole
from shardpass.element_types import ELEMENT_TYPES
from shardpass.sharding import Sharding, TupleSharding
from shardpass.sharding.meaning import MOST_DEVICES
from shardpass.sharding.notations.partition_spec import from_named_sharding, is_named_sharding

MOST_DIMENSIONS = 1024


def shape_of(given: Any) -> tuple[int, ...]:
    """Read a shape. Raises ShardpassError (SP406)."""
    try:
        entries = None if isinstance(given, str | bytes) else list(islice(given, MOST_DIMENSIONS + 1))
    except Exception:  # of the object's own
        entries = None
    if entries is None:
        raise table.SHAPE.error(text=shown(given), reason="it is no sequence of sizes")
    if len(entries) > MOST_DIMENSIONS:
        raise table.SHAPE.error(text=shown(given), reason=f"it has more than {MOST_DIMENSIONS} sizes")
    sizes = []
    for size in entries:
        number = whole(size)
        if number is None:
            raise table.SHAPE.error(text=shown(tuple(entries)), reason=f"{shown(size)} is not a size")
        sizes.append(number)
    return tuple(sizes)


def element_name_of(given: Any) -> str:
    """Return the name of an element type, given as a name or a dtype. Raises ShardpassError (SP405)."""
    if isinstance(given, str):
        return "".join([given])
    known = ", ".join(row.mlir for row in ELEMENT_TYPES)
    try:
        dtype = None if given is None else np.dtype(given)
    except Exception:  # of the object's own, too
        dtype = None
    name = next((row.mlir for row in ELEMENT_TYPES if dtype is not None and row.dtype == dtype), None)
    if name is None:
        raise table.ELEMENT_TYPE.error(name=shown(given), known=known)
    return name


def sharding_of(given: Any, side: str, rank: int) -> Sharding | TupleSharding | str:
    """Read a sharding. Raises ShardpassError (SP415)."""
    if isinstance(given, Sharding | TupleSharding):
        return given
    if isinstance(given, str):
        return "".join([given])
    try:
        if is_named_sharding(given):
            return from_named_sharding(given, rank)
    except ShardpassError:
        raise
    except Exception:  # an object that only looks like one
        pass
    raise table.NOT_A_SHARDING.error(side=side, given=shown(given))


def count_of(given: Any) -> int | None:
    """Read a whole number. Raises ShardpassError (SP416)."""
    number = None if given is None else whole(given)
    if given is not None and (number is None or not 1 <= number <= MOST_DEVICES):
        given = repr(given) if isinstance(given, str) else given
        raise table.DEVICE_COUNT.error(given=shown(given), most=MOST_DEVICES)
    return number
