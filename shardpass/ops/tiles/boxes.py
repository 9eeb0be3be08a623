"""Boxes along one dimension of a tile: slicing, padding and inserting them.

Everything here builds at the current insertion point and location.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from jaxlib.mlir import ir
from jaxlib.mlir.dialects import stablehlo as hlo

from shardpass.ir.tensors import operation, shape_of, splat, splat_text
from shardpass.ops.tiles.summing import zero_text


def zeros(element: Any, shape: Sequence[int] = ()) -> Any:
    """Build zeros of any element type."""
    return splat(ir.RankedTensorType.get(list(shape), element), zero_text(element))


def is_zero(value: Any) -> bool:
    """Return whether a value is a constant zero, not -0.0, perhaps converted, broadcast or reshaped."""
    while not isinstance(value.owner, ir.Block):
        op = operation(value.owner)
        if op.name == "stablehlo.constant":
            text = splat_text(op)  # 0, 0.000000e+00, (0.000000e+00,0.000000e+00), false
            return text == "false" or (text is not None and set(text) <= set("0.e+(,)"))
        if op.name not in ("stablehlo.convert", "stablehlo.broadcast_in_dim", "stablehlo.reshape"):
            return False
        value = op.operands[0]
    return False


def cut(value: Any, dim: int, start: int, stop: int, stride: int = 1) -> Any:
    """Build ``value[start:stop:stride]`` along ``dim``; returns ``value`` itself for the whole dimension."""
    shape = shape_of(value)
    if (start, stop, stride) == (0, shape[dim], 1):
        return value
    starts, strides, stops = [0] * len(shape), [1] * len(shape), list(shape)
    starts[dim], stops[dim], strides[dim] = start, stop, stride
    return hlo.slice(value, starts, stops, strides)


def grow(value: Any, dim: int, low: int, high: int, fill: Any | None = None, interior: int = 0) -> Any:
    """Pad ``value`` along ``dim`` with the scalar ``fill`` (zero)."""
    if not (low or high or interior):
        return value
    rank = len(shape_of(value))
    rows = []
    for amount in (low, high, interior):
        row = [0] * rank
        row[dim] = amount
        rows.append(row)
    return hlo.pad(value, zeros(value.type.element_type) if fill is None else fill, *rows)


def cut_at(value: Any, dim: int, start: Any, size: int) -> Any:
    """Slice ``size`` elements along ``dim`` from ``start``, a scalar."""
    shape = list(shape_of(value))
    if shape[dim] == size:
        return value
    zero = splat(start.type, 0)
    shape[dim] = size
    return hlo.dynamic_slice(value, [start if d == dim else zero for d in range(len(shape))], shape)


def put_at(target: Any, value: Any, dim: int, start: Any) -> Any:
    zero = splat(start.type, 0)
    rank = len(shape_of(target))
    return hlo.dynamic_update_slice(target, value, [start if d == dim else zero for d in range(rank)])
