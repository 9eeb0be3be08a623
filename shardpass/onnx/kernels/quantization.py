"""Convert floats to small integers or 8-bit floats and back, with one scale, a scale along an axis, or a scale per
block.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import jax.numpy as jnp
import numpy as np

from shardpass.onnx.kernels.casting import NARROW, cast
from shardpass.onnx.kernels.common import Array, Kernel, dtype_of, optional
from shardpass.onnx.model import Node


def _spread(node: Node, value: Any, shape: Sequence[int]) -> Array:
    """Reshape a scale or zero point for broadcasting to the array."""
    value = jnp.asarray(value)
    if value.size == 1:
        return value.reshape(())
    axis = node.attributes.get("axis", 1)
    if block := node.attributes.get("block_size", 0):
        return jnp.repeat(value, block, axis=axis)[tuple(slice(0, size) for size in shape)]
    places = [1] * len(shape)
    places[axis] = -1
    return value.reshape(places)


def _integer(kind: Any) -> bool:
    return bool(jnp.issubdtype(kind, jnp.integer)) or np.dtype(kind).name in NARROW


def _quantize(node: Node, inputs: Sequence[Any]) -> tuple[Array, ...]:
    x, zero = jnp.asarray(inputs[0]), optional(inputs, 2)
    kind = np.dtype(np.uint8)
    if zero is not None:
        kind = np.dtype(jnp.result_type(zero))
    elif node.attributes.get("output_dtype"):
        kind = dtype_of(node.attributes["output_dtype"])
    scale = _spread(node, inputs[1], x.shape)
    if node.attributes.get("precision"):
        precision = dtype_of(node.attributes["precision"])
        x, scale = x.astype(precision), scale.astype(precision)
    scaled = x / scale
    if not _integer(kind):
        return (cast(scaled, kind, node.attributes),)
    whole = jnp.round(scaled.astype(jnp.promote_types(scaled.dtype, jnp.float32)))
    if zero is not None:
        whole = whole + _spread(node, zero, x.shape).astype(whole.dtype)
    limits = jnp.iinfo(kind)
    return (jnp.clip(whole, int(limits.min), int(limits.max)).astype(jnp.int32).astype(kind),)


def _dequantize(node: Node, inputs: Sequence[Any]) -> tuple[Array, ...]:
    x, zero = jnp.asarray(inputs[0]), optional(inputs, 2)
    kind = jnp.result_type(inputs[1])
    if node.attributes.get("output_dtype"):
        kind = dtype_of(node.attributes["output_dtype"])
    wide = x.astype(jnp.float32)
    if zero is not None and _integer(x.dtype):
        wide = wide - _spread(node, zero, x.shape).astype(jnp.float32)
    return ((wide * _spread(node, inputs[1], x.shape).astype(jnp.float32)).astype(kind),)


KERNELS: Mapping[str, Kernel] = {"DequantizeLinear": _dequantize, "QuantizeLinear": _quantize}
