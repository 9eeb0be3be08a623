"""Ops that compute each element separately, with broadcasting."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from shardpass.onnx.kernels.common import Array, Kernel, Unsupported, each, numbers, optional
from shardpass.onnx.model import Node


def _folded(function: Callable[[Array, Array], Array]) -> Kernel:
    def kernel(node: Node, inputs: Sequence[Any]) -> tuple[Array, ...]:
        total = jnp.asarray(inputs[0])
        for value in inputs[1:]:
            total = function(total, value)
        return (total,)

    return kernel


def _mean(node: Node, inputs: Sequence[Any]) -> tuple[Array, ...]:
    total = _folded(jnp.add)(node, inputs)[0]
    return (total / np.asarray(len(inputs), total.dtype),)


def _divide(a: Array, b: Array) -> Array:
    """Divide; integers are rounded to zero."""
    if not jnp.issubdtype(jnp.result_type(a), jnp.integer):
        return jnp.divide(a, b)
    shape = np.broadcast_shapes(np.shape(a), np.shape(b))
    return jax.lax.div(jnp.broadcast_to(a, shape), jnp.broadcast_to(b, shape))


def _clip(node: Node, inputs: Sequence[Any]) -> tuple[Array, ...]:
    low, high = optional(inputs, 1), optional(inputs, 2)
    clipped = inputs[0] if low is None else jnp.maximum(inputs[0], low)
    return (jnp.asarray(clipped) if high is None else jnp.minimum(clipped, high),)


def _mod(node: Node, inputs: Sequence[Any]) -> tuple[Array, ...]:
    return ((jnp.fmod if node.attributes.get("fmod") else jnp.mod)(*inputs),)


def _power(x: Array, y: Array) -> Array:
    """Compute ``x ** y`` with the type of ``x``, as ONNX defines it.

    An integer base with a float exponent is computed in the exponent's type, since 2 ** 0.5 is not an integer.
    """
    kind = jnp.result_type(x)
    if jnp.issubdtype(kind, jnp.integer) and jnp.issubdtype(jnp.result_type(y), jnp.floating):
        x = jnp.asarray(x).astype(jnp.result_type(y))
    return jnp.power(x, y).astype(kind)


def _shift(node: Node, inputs: Sequence[Any]) -> tuple[Array, ...]:
    """Shift; by the width of the type, or by more, leaves zeros, or copies of the sign."""
    array, by = jnp.broadcast_arrays(*inputs)
    if node.attributes["direction"] == "LEFT":
        return (jax.lax.shift_left(array, by),)
    signed = jnp.issubdtype(array.dtype, jnp.signedinteger)
    return ((jax.lax.shift_right_arithmetic if signed else jax.lax.shift_right_logical)(array, by),)


def _is_inf(node: Node, inputs: Sequence[Any]) -> tuple[Array, ...]:
    signs = [name for name in ("negative", "positive") if node.attributes.get(f"detect_{name}", 1)]
    array = jnp.asarray(inputs[0])
    tests = {"negative": jnp.isneginf, "positive": jnp.isposinf}
    if len(signs) == 2:
        return (jnp.isinf(array),)
    return (tests[signs[0]](array) if signs else jnp.zeros(array.shape, bool),)


def _gelu(node: Node, inputs: Sequence[Any]) -> tuple[Array, ...]:
    return (jax.nn.gelu(inputs[0], approximate=node.attributes.get("approximate", "none") == "tanh"),)


def _leaky(node: Node, inputs: Sequence[Any]) -> tuple[Array, ...]:
    x = jnp.asarray(inputs[0])
    return (jnp.where(x < 0, jnp.asarray(node.attributes.get("alpha", 0.01), x.dtype) * x, x),)


def _dropout(node: Node, inputs: Sequence[Any]) -> tuple[Array, ...]:
    training, ratio = optional(inputs, 2), optional(inputs, 1)
    drops = ratio is None or not isinstance(ratio, np.ndarray) or bool(ratio.reshape(-1)[0])
    if training is not None and any(numbers(training, "training_mode")) and drops:
        raise Unsupported("it drops at random, in training mode")
    return inputs[0], jnp.ones(np.shape(inputs[0]), bool)


KERNELS: Mapping[str, Kernel] = {
    "Abs": each(jnp.abs),
    "Acos": each(jnp.arccos),
    "Acosh": each(jnp.arccosh),
    "Add": each(jnp.add),
    "And": each(jnp.logical_and),
    "Asin": each(jnp.arcsin),
    "Asinh": each(jnp.arcsinh),
    "Atan": each(jnp.arctan),
    "Atanh": each(jnp.arctanh),
    "BitShift": _shift,
    "BitwiseAnd": each(jnp.bitwise_and),
    "BitwiseNot": each(jnp.bitwise_not),
    "BitwiseOr": each(jnp.bitwise_or),
    "BitwiseXor": each(jnp.bitwise_xor),
    "Ceil": each(jnp.ceil),
    "Clip": _clip,
    "Cos": each(jnp.cos),
    "Cosh": each(jnp.cosh),
    "Div": each(_divide),
    "Dropout": _dropout,
    "Equal": each(jnp.equal),
    "Erf": each(jax.lax.erf),
    "Exp": each(jnp.exp),
    "Floor": each(jnp.floor),
    "Gelu": _gelu,
    "Greater": each(jnp.greater),
    "GreaterOrEqual": each(jnp.greater_equal),
    "Identity": each(lambda x: x),
    "IsInf": _is_inf,
    "IsNaN": each(jnp.isnan),
    "LeakyRelu": _leaky,
    "Less": each(jnp.less),
    "LessOrEqual": each(jnp.less_equal),
    "Log": each(jnp.log),
    "Max": _folded(jnp.maximum),
    "Mean": _mean,
    "Min": _folded(jnp.minimum),
    "Mod": _mod,
    "Mul": each(jnp.multiply),
    "Neg": each(jnp.negative),
    "Not": each(jnp.logical_not),
    "Or": each(jnp.logical_or),
    "PRelu": each(lambda x, slope: jnp.where(x < 0, slope * x, x)),
    "Pow": each(_power),
    "Reciprocal": each(jnp.reciprocal),
    "Relu": each(lambda x: jnp.maximum(x, np.zeros((), jnp.result_type(x)))),
    "Round": each(jnp.round),
    "Sigmoid": each(jax.nn.sigmoid),
    "Sign": each(jnp.sign),
    "Sin": each(jnp.sin),
    "Sinh": each(jnp.sinh),
    "Sqrt": each(jnp.sqrt),
    "Sub": each(jnp.subtract),
    "Sum": _folded(jnp.add),
    "Tan": each(jnp.tan),
    "Tanh": each(jnp.tanh),
    "Where": each(jnp.where),
    "Xor": each(jnp.logical_xor),
}
