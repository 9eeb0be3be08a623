"""Cut boxes from arrays on a device, and write boxes into arrays, at offsets of any size.

Without ``jax_enable_x64`` JAX turns each integer argument into one of 32 bits, where an offset of 2**31 or more becomes
another one without an error. Offsets into an array with a dimension beyond 32 bits are of 64 bits, and the program with
these is traced with 64-bit types. An array with more than 2**31 elements in smaller dimensions needs no such offsets.

Programs are kept by the shape of the box, not by its offset.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import lru_cache
from typing import Any

import jax
import numpy as np

MOST = np.iinfo(np.int32).max


def cut(array: Any, start: Sequence[int], shape: tuple[int, ...]) -> Any:
    """Cut the box of ``shape`` that begins at ``start``."""
    return _run(_cutter(tuple(shape)), array, at=offsets(start, array.shape))


def cut_flat(vector: Any, start: int, shape: tuple[int, ...]) -> Any:
    """Cut the elements of ``vector`` from ``start`` on, in ``shape``."""
    return _run(_flat_cutter(tuple(shape)), vector, at=offsets((start,), vector.shape))


def write(array: Any, piece: Any, start: Sequence[int]) -> Any:
    """Write ``piece`` at ``start`` into ``array``, whose buffer is donated; return the result."""
    return _run(_writer(), array, piece, at=offsets(start, array.shape))


def offsets(start: Sequence[int], shape: Sequence[int]) -> Any:
    """Convert the offsets ``start`` in an array of ``shape`` to integers wide enough for its indices."""
    return np.array(start, np.int64 if max(shape, default=0) > MOST else np.int32)


def _run(program: Any, *arrays: Any, at: Any) -> Any:
    if at.dtype == np.int32:
        return program(*arrays, at)
    with jax.enable_x64(True):
        return program(*arrays, at)


@lru_cache(maxsize=4096)
def _cutter(shape: tuple[int, ...]) -> Any:
    return jax.jit(lambda array, at: jax.lax.dynamic_slice(array, tuple(at), shape))


@lru_cache(maxsize=4096)
def _flat_cutter(shape: tuple[int, ...]) -> Any:
    return jax.jit(lambda vector, at: jax.lax.dynamic_slice(vector, tuple(at), (math.prod(shape),)).reshape(shape))


@lru_cache(maxsize=1)
def _writer() -> Any:
    return jax.jit(lambda array, piece, at: jax.lax.dynamic_update_slice(array, piece, tuple(at)), donate_argnums=0)
