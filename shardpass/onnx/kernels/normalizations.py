"""Normalizations without a function body in ONNX, or with a body unsuitable for a sharded program."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from shardpass.onnx.kernels.common import Array, Kernel, optional
from shardpass.onnx.model import Node


def _layer_norm(node: Node, inputs: Sequence[Any]) -> tuple[Array, ...]:
    x, scale, bias = inputs[0], inputs[1], optional(inputs, 2)
    rank = jnp.ndim(x)
    over = tuple(range(node.attributes.get("axis", -1) % rank, rank))
    wide = x.astype(jnp.float32) if jnp.result_type(x) in (jnp.float16, jnp.bfloat16) else x
    mean = wide.mean(over, keepdims=True)
    centred = wide - mean
    inverse = jax.lax.rsqrt((centred * centred).mean(over, keepdims=True) + node.attributes.get("epsilon", 1e-5))
    y = (centred * inverse).astype(jnp.result_type(x)) * scale
    return (y if bias is None else y + bias), mean, inverse


def per_channel(values: Any, rank: int) -> Array:
    """Reshape a vector to axis 1 of an array of ``rank``."""
    values = jnp.asarray(values)
    return values.reshape((1, -1) + (1,) * (rank - 2)) if rank > 1 else values


def _batch_norm(node: Node, inputs: Sequence[Any]) -> tuple[Array, ...]:
    """Normalize; training mode uses the batch's mean and variance, and also returns their running values."""
    x, scale, bias, mean, variance = inputs
    rank, epsilon = jnp.ndim(x), node.attributes.get("epsilon", 1e-5)
    running: tuple[Array, ...] = ()
    if node.attributes.get("training_mode"):
        over = tuple(axis for axis in range(rank) if axis != 1)
        momentum = node.attributes.get("momentum", 0.9)
        batch = jnp.mean(x, over), jnp.var(x, over)
        running = tuple(
            (old * momentum + new * (1 - momentum)).astype(jnp.result_type(old))
            for old, new in zip((mean, variance), batch, strict=True)
        )
        mean, variance = batch
    inverse = per_channel(scale, rank) * jax.lax.rsqrt(per_channel(variance, rank) + epsilon)
    y = (x - per_channel(mean, rank)) * inverse + per_channel(bias, rank)
    return (y.astype(jnp.result_type(x)), *running)


def _instance_norm(node: Node, inputs: Sequence[Any]) -> tuple[Array, ...]:
    x, scale, bias = inputs
    rank = jnp.ndim(x)
    over = tuple(range(2, rank))
    mean, variance = jnp.mean(x, over, keepdims=True), jnp.var(x, over, keepdims=True)
    y = (x - mean) * jax.lax.rsqrt(variance + node.attributes.get("epsilon", 1e-5))
    return (y * per_channel(scale, rank) + per_channel(bias, rank),)


def _lp_norm(node: Node, inputs: Sequence[Any]) -> tuple[Array, ...]:
    x, axis = jnp.asarray(inputs[0]), node.attributes.get("axis", -1)
    size = jnp.abs(x) if node.attributes.get("p", 2) == 1 else x * x
    norm = size.sum(axis, keepdims=True, dtype=x.dtype)
    norm = norm if node.attributes.get("p", 2) == 1 else jnp.sqrt(norm)
    return (jnp.where(norm == 0, jnp.zeros_like(x), x / jnp.where(norm == 0, jnp.ones_like(norm), norm)),)


def _lrn(node: Node, inputs: Sequence[Any]) -> tuple[Array, ...]:
    """Divide by a sum of squares over a window of channels."""
    x, size = jnp.asarray(inputs[0]), node.attributes["size"]
    alpha, beta, bias = (
        node.attributes.get(name, default) for name, default in (("alpha", 1e-4), ("beta", 0.75), ("bias", 1.0))
    )
    window = [size if axis == 1 else 1 for axis in range(x.ndim)]
    before = (size - 1) // 2
    pads = [(before, size - 1 - before) if axis == 1 else (0, 0) for axis in range(x.ndim)]
    zero = np.zeros((), x.dtype)
    squares = jax.lax.reduce_window(x * x, zero, jax.lax.add, window, [1] * x.ndim, pads)
    return (x / (bias + alpha / size * squares) ** beta,)


KERNELS: Mapping[str, Kernel] = {
    "BatchNormalization": _batch_norm,
    "InstanceNormalization": _instance_norm,
    "LRN": _lrn,
    "LayerNormalization": _layer_norm,
    "LpNormalization": _lp_norm,
}
