"""Ops that change the element type."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from shardpass.onnx.kernels.common import Array, Kernel, dtype_of
from shardpass.onnx.model import Node

SATURATING = ("float8_e4m3fn", "float8_e4m3fnuz", "float8_e5m2", "float8_e5m2fnuz")
NARROW = ("int2", "int4", "uint2", "uint4")
POWERS = "float8_e8m0fnu"


def cast(array: Any, kind: np.dtype[Any], attributes: Mapping[str, Any]) -> Array:
    """Cast ``array`` to ``kind`` by the op's attributes: floats of 8 bits saturate unless these forbid it.

    An integer of less than 8 bits has the last bits of a wider one, as in NumPy.
    """
    array = jnp.asarray(array)
    is_float = jnp.issubdtype(array.dtype, jnp.floating)
    if kind.name == POWERS and is_float:
        return _power_of_two(array, attributes)
    if kind.name in NARROW and is_float:
        return array.astype(jnp.int32).astype(kind)
    if kind.name in SATURATING and attributes.get("saturate", 1) and is_float:
        wide = array.astype(jnp.promote_types(array.dtype, jnp.float32))
        most = float(jnp.finfo(kind).max)
        array = jnp.where(jnp.isnan(wide), wide, jnp.clip(wide, -most, most))
    return array.astype(kind)


def _power_of_two(array: Array, attributes: Mapping[str, Any]) -> Array:
    """Round to powers of two, the only values of the type: the exponent of an f32. NaN and infinities become NaN.

    The attribute ``round_mode`` selects the power for a number between two: "up", "down", or "nearest", which rounds
    up from the middle.
    """
    bits = jax.lax.bitcast_convert_type(array.astype(jnp.float32), jnp.uint32)
    exponent, fraction = (bits >> 23) & 0xFF, bits & 0x7FFFFF
    mode = attributes.get("round_mode", "up")
    if mode == "nearest":  # of a subnormal number, more than half
        up = (fraction > 0x400000) | ((fraction == 0x400000) & (exponent > 0))
    else:
        up = (fraction > 0) & (mode == "up") & ((exponent > 0) | (fraction > 0x400000))
    up = up & (exponent < (0xFE if attributes.get("saturate", 1) else 0xFF))
    raised = jnp.where(exponent == 0xFF, exponent, exponent + up.astype(jnp.uint32))
    return jax.lax.bitcast_convert_type(raised.astype(jnp.uint8), jnp.dtype(POWERS))


def _cast(node: Node, inputs: Sequence[Any]) -> tuple[Array, ...]:
    return (cast(inputs[0], dtype_of(node.attributes["to"]), node.attributes),)


def _cast_like(node: Node, inputs: Sequence[Any]) -> tuple[Array, ...]:
    return (cast(inputs[0], np.dtype(jnp.result_type(inputs[1])), node.attributes),)


def _bit_cast(node: Node, inputs: Sequence[Any]) -> tuple[Array, ...]:
    array = jnp.asarray(inputs[0])
    if jnp.issubdtype(array.dtype, bool):
        array = array.astype(np.uint8)
    return (jax.lax.bitcast_convert_type(array, dtype_of(node.attributes["to"])),)


KERNELS: Mapping[str, Kernel] = {"BitCast": _bit_cast, "Cast": _cast, "CastLike": _cast_like}
