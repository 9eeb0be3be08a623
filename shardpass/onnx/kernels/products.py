"""Products of matrices, in floats and in quantized integers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import jax.numpy as jnp
import numpy as np

from shardpass.onnx.kernels.common import Array, Kernel, each, optional
from shardpass.onnx.model import Node


def _gemm(node: Node, inputs: Sequence[Any]) -> tuple[Array, ...]:
    a, b, c = inputs[0], inputs[1], optional(inputs, 2)
    product = (a.T if node.attributes.get("transA") else a) @ (b.T if node.attributes.get("transB") else b)
    alpha, beta = node.attributes.get("alpha", 1.0), node.attributes.get("beta", 1.0)
    product = product if alpha == 1.0 else product * jnp.asarray(alpha, product.dtype)
    if c is None:
        return (product,)
    return (product + (c if beta == 1.0 else c * jnp.asarray(beta, product.dtype)),)


def _einsum(node: Node, inputs: Sequence[Any]) -> tuple[Array, ...]:
    return (jnp.einsum(node.attributes["equation"], *inputs),)


def _matmul_integer(node: Node, inputs: Sequence[Any]) -> tuple[Array, ...]:
    left = centred(inputs[0], optional(inputs, 2), -1)
    right = centred(inputs[1], optional(inputs, 3), -2)
    return (jnp.matmul(left, right, preferred_element_type=jnp.int32),)


def centred(array: Array, zero: Any, contracted: int) -> Array:
    """Subtract the zero point (possibly different for each row or column) from the integers, in 32 bits."""
    wide = jnp.asarray(array).astype(jnp.int32)
    if zero is None:
        return wide
    zero = jnp.asarray(zero).astype(jnp.int32)
    if zero.ndim == 1 and zero.shape != (1,):
        zero = jnp.expand_dims(zero, 1 if contracted == -1 else 0)
    return wide - zero


def _qlinear_matmul(node: Node, inputs: Sequence[Any]) -> tuple[Array, ...]:
    a, a_scale, a_zero, b, b_scale, b_zero, y_scale, y_zero = inputs
    product = jnp.matmul(centred(a, a_zero, -1), centred(b, b_zero, -2), preferred_element_type=jnp.int32)
    factor = _per_row(a_scale) * jnp.asarray(b_scale).astype(jnp.float32) / jnp.asarray(y_scale).astype(jnp.float32)
    return (requantized(product, factor, y_zero),)


def _per_row(scale: Any) -> Array:
    scale = jnp.asarray(scale).astype(jnp.float32)
    return scale[:, None] if scale.ndim == 1 and scale.shape != (1,) else scale


def requantized(product: Array, factor: Array, zero: Any) -> Array:
    """Convert sums of 32 bits to the integers that the next op reads."""
    kind = jnp.result_type(zero)
    limits = jnp.iinfo(kind)
    scaled = jnp.round(product.astype(jnp.float32) * factor) + jnp.asarray(zero).astype(jnp.float32)
    return jnp.clip(scaled, np.float32(limits.min), np.float32(limits.max)).astype(kind)


def _det(node: Node, inputs: Sequence[Any]) -> tuple[Array, ...]:
    return (jnp.linalg.det(inputs[0]),)


KERNELS: Mapping[str, Kernel] = {
    "Det": _det,
    "Einsum": _einsum,
    "Gemm": _gemm,
    "MatMul": each(jnp.matmul),
    "MatMulInteger": _matmul_integer,
    "QLinearMatMul": _qlinear_matmul,
}
