"""Random whole arrays for a program's arguments, the same for the same seed."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from shardpass.runtime.partitioned_signature import Boundary
from shardpass.runtime.tiles import Array


def random_inputs(arguments: Sequence[Boundary], seed: int = 0) -> list[Array]:
    """Floats, and both parts of complex numbers, in [-1, 1]; integers in [0, 8), as far as the type reaches."""
    rng = np.random.default_rng(seed)
    return [_random(rng, boundary) for boundary in arguments]


def _random(rng: np.random.Generator, boundary: Boundary) -> Array:
    shape, dtype, name = boundary.shape, boundary.dtype, boundary.element.mlir
    if name == "i1":
        values: Any = rng.integers(0, 2, shape)
    elif name.startswith(("i", "ui")):
        limit = 2 if boundary.element.bits < 4 else 8
        values = rng.integers(0, limit, shape)
    elif name.startswith("complex"):
        values = rng.uniform(-1, 1, shape) + 1j * rng.uniform(-1, 1, shape)
    elif name == "f8E8M0FNU":  # powers of two alone
        values = 2.0 ** rng.integers(-2, 3, shape)
    else:
        values = rng.uniform(-1, 1, shape)
    return np.asarray(values).astype(dtype)


def poison(boundary: Boundary) -> Any:
    """What to leave in an argument's padding so that a program that reads it is found out."""
    name = boundary.element.mlir
    if name == "i1":
        return True
    if name.startswith("ui"):
        return 2 ** int(name[2:]) - 1
    if name.startswith("i"):
        return 2 ** (int(name[1:]) - 1) - 1
    return 1.0 if name in ("f4E2M1FN",) else np.nan
