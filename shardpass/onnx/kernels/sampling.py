"""GridSample: interpolate an array at the places given by another array.

Along each axis a place becomes a few neighbours with weights (one, two or four of them); the result is the sum over all
combinations. Neighbours outside of the array are 0, the nearest element, or what a mirror at the border shows.
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from shardpass.onnx.kernels.common import Array, Kernel, Unsupported
from shardpass.onnx.model import Node

_MODES = {"bilinear": "linear", "bicubic": "cubic"}
_CUBIC = -0.75  # the free coefficient of the cubic kernel


def _grid_sample(node: Node, inputs: Sequence[Any]) -> tuple[Array, ...]:
    x, grid = jnp.asarray(inputs[0]), jnp.asarray(inputs[1])
    mode = node.attributes.get("mode", "linear")
    mode, padding = _MODES.get(mode, mode), node.attributes.get("padding_mode", "zeros")
    align, rank = bool(node.attributes.get("align_corners")), x.ndim - 2
    taps = [_taps(grid[..., rank - 1 - k], x.shape[2 + k], mode, padding, align) for k in range(rank)]
    values = jnp.moveaxis(x, 1, -1)
    batch = jax.lax.broadcasted_iota(np.int64, grid.shape[:-1], 0)
    total = jnp.zeros((*grid.shape[:-1], x.shape[1]), x.dtype)
    for chosen in itertools.product(*taps):
        weight = chosen[0][1]
        for _, other in chosen[1:]:
            weight = weight * other
        total = total + values[(batch, *(index for index, _ in chosen))] * weight[..., None].astype(x.dtype)
    return (jnp.moveaxis(total, -1, 1),)


def _taps(grid: Array, size: int, mode: str, padding: str, align: bool) -> list[tuple[Array, Array]]:
    """Return the neighbours along one axis with their weights; ``grid`` ranges from -1 to 1."""
    at = (grid + 1) / 2 * (size - 1) if align else ((grid + 1) * size - 1) / 2
    borders = (0.0, size - 1.0) if align else (-0.5, size - 0.5)
    at = jnp.round(at) if mode == "nearest" else at
    if padding == "border":
        at = jnp.clip(at, 0, size - 1)
    elif padding == "reflection":
        at = _mirrored(at, borders)
    left = jnp.floor(at)
    ratio = at - left
    weights: dict[int, Array]
    if mode == "nearest":
        weights = {0: jnp.ones_like(at)}
    elif mode == "linear":
        weights = {0: 1 - ratio, 1: ratio}
    elif mode == "cubic":
        weights = {k: _cubic(jnp.abs(ratio - k)) for k in (-1, 0, 1, 2)}
    else:
        raise Unsupported(f"its mode '{mode}' is unknown")
    return [_tap(left + k, weight, size, padding, borders) for k, weight in weights.items()]


def _tap(place: Array, weight: Array, size: int, padding: str, borders: tuple[float, float]) -> tuple[Array, Array]:
    if padding == "zeros":
        weight = jnp.where((place >= 0) & (place <= size - 1), weight, 0)
    elif padding == "reflection":
        place = _mirrored(place, borders)
    return jnp.clip(place, 0, size - 1).astype(np.int64), weight


def _mirrored(at: Array, borders: tuple[float, float]) -> Array:
    low, high = borders
    length = high - low
    return jnp.full_like(at, low) if not length else low + length - jnp.abs((at - low) % (2 * length) - length)


def _cubic(distance: Array) -> Array:
    a, d = _CUBIC, distance
    near = ((a + 2) * d - (a + 3)) * d * d + 1
    far = ((a * d - 5 * a) * d + 8 * a) * d - 4 * a
    return jnp.where(d <= 1, near, jnp.where(d < 2, far, 0))


KERNELS: Mapping[str, Kernel] = {"GridSample": _grid_sample}
