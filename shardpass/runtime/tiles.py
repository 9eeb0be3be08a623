"""Convert between whole arrays and tiles, in NumPy."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from shardpass.diagnostics import table_runtime
from shardpass.runtime.partitioned_signature import Boundary, Signature

Array = np.ndarray[Any, Any]


def check_arguments(signature: Signature, arrays: Sequence[Any]) -> None:
    """Check whole arrays against the signature, by shape and element type.

    Raises:
        ShardpassError: SP520 (how many), SP521 (shape or element type).
    """
    if len(arrays) != len(signature.arguments):
        raise table_runtime.WRONG_ARGUMENT_COUNT.error(expected=len(signature.arguments), given=len(arrays))
    for index, (array, boundary) in enumerate(zip(arrays, signature.arguments, strict=True)):
        shape = tuple(np.shape(array))
        dtype = array.dtype if hasattr(array, "dtype") else np.asarray(array).dtype
        if shape != boundary.shape or dtype != boundary.dtype:
            raise table_runtime.WRONG_ARGUMENT.error(
                index=index, expected=typed(boundary.dtype, boundary.shape), given=typed(dtype, shape)
            )


def typed(dtype: Any, shape: Sequence[int]) -> str:
    """Format a type as ``float32[4,3]``."""
    return f"{dtype}[{','.join(map(str, shape))}]"


def pad(array: Array, boundary: Boundary, fill: Any = 0) -> Array:
    """Pad the global array at the end of each dimension to whole tiles. ``fill``: a value or a function of it."""
    if boundary.even:
        return array
    fill = fill(boundary) if callable(fill) else fill
    widths = [(0, to - size) for size, to in zip(boundary.shape, boundary.padded, strict=True)]
    return np.pad(array, widths, constant_values=np.asarray(fill).astype(boundary.dtype))


def tile_slices(boundary: Boundary) -> list[tuple[tuple[int, ...], tuple[slice, ...]]]:
    """Return, for each tile, its index and its slices of the padded array."""
    return [
        (index, tuple(slice(i * size, (i + 1) * size) for i, size in zip(index, boundary.tile, strict=True)))
        for index in np.ndindex(*boundary.counts)
    ]


def split(array: Array, boundary: Boundary, devices: int, fill: Any = 0) -> list[Array]:
    """Return the tile of each device, in device order; ``fill``: the padding."""
    padded = pad(array, boundary, fill)
    tiles: list[Any] = [None] * devices
    holders = boundary.holders(devices)
    for index, where in tile_slices(boundary):
        for device in holders[index]:
            tiles[device] = padded[where]
    return tiles


def join(tiles: Sequence[Array], boundary: Boundary, copy: int = 0) -> Array:
    """Return the global array, without padding, from the tile of each device."""
    whole = np.empty(boundary.padded, boundary.dtype)
    holders = boundary.holders(len(tiles))
    for index, where in tile_slices(boundary):
        whole[where] = tiles[holders[index][copy]]
    return whole[tuple(slice(size) for size in boundary.shape)]
