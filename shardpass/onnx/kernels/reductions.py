"""Ops that reduce axes, or run along them: sums, extremes, softmax, running sums."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from shardpass.onnx.kernels.common import Array, Kernel, axes_of, numbers
from shardpass.onnx.model import Node


def _reduction(function: Callable[..., Array]) -> Kernel:
    def kernel(node: Node, inputs: Sequence[Any]) -> tuple[Array, ...]:
        axes = axes_of(node, inputs)
        if axes is None and node.attributes.get("noop_with_empty_axes"):
            axes = []
        over = tuple(range(jnp.ndim(inputs[0]))) if axes is None else tuple(axes)
        return (function(jnp.asarray(inputs[0]), axis=over, keepdims=bool(node.attributes.get("keepdims", 1))),)

    return kernel


def _extreme(function: Callable[..., Array], greatest: bool) -> Callable[..., Array]:
    """Reduce to the extreme; for no elements, to the least or the greatest value of the type."""

    def reduced(array: Array, **over: Any) -> Array:
        kind = array.dtype
        if jnp.issubdtype(kind, bool):
            return (jnp.any if greatest else jnp.all)(array, **over)
        if jnp.issubdtype(kind, jnp.floating):
            first = -np.inf if greatest else np.inf
        else:
            first = jnp.iinfo(kind).min if greatest else jnp.iinfo(kind).max
        return function(array, initial=np.asarray(first, kind), **over)

    return reduced


def _place_of_extreme(function: Callable[..., Array]) -> Kernel:
    def kernel(node: Node, inputs: Sequence[Any]) -> tuple[Array, ...]:
        array, axis = jnp.asarray(inputs[0]), node.attributes.get("axis", 0)
        keep = bool(node.attributes.get("keepdims", 1))
        if node.attributes.get("select_last_index"):
            last = array.shape[axis] - 1
            return ((last - function(jnp.flip(array, axis), axis=axis, keepdims=keep)).astype(np.int64),)
        return (function(array, axis=axis, keepdims=keep).astype(np.int64),)

    return kernel


def _softmax(node: Node, inputs: Sequence[Any]) -> tuple[Array, ...]:
    return (jax.nn.softmax(inputs[0], axis=node.attributes.get("axis", -1)),)


def _log_softmax(node: Node, inputs: Sequence[Any]) -> tuple[Array, ...]:
    return (jax.nn.log_softmax(inputs[0], axis=node.attributes.get("axis", -1)),)


def _hardmax(node: Node, inputs: Sequence[Any]) -> tuple[Array, ...]:
    array, axis = jnp.asarray(inputs[0]), node.attributes.get("axis", -1)
    places = jax.lax.broadcasted_iota(np.int64, array.shape, axis % array.ndim)
    return ((places == jnp.argmax(array, axis, keepdims=True)).astype(array.dtype),)


def _running(function: Callable[..., Array], neutral: int) -> Kernel:
    def kernel(node: Node, inputs: Sequence[Any]) -> tuple[Array, ...]:
        array, axis = jnp.asarray(inputs[0]), numbers(inputs[1], "axis")[0]
        axis %= array.ndim
        reverse = bool(node.attributes.get("reverse"))
        array = jnp.flip(array, axis) if reverse else array
        if node.attributes.get("exclusive"):
            pads = [(1, -1, 0) if k == axis else (0, 0, 0) for k in range(array.ndim)]
            array = jax.lax.pad(array, np.asarray(neutral, array.dtype), pads)
        total = function(array, axis=axis, dtype=array.dtype)
        return (jnp.flip(total, axis) if reverse else total,)

    return kernel


KERNELS: Mapping[str, Kernel] = {
    "ArgMax": _place_of_extreme(jnp.argmax),
    "ArgMin": _place_of_extreme(jnp.argmin),
    "CumProd": _running(jnp.cumprod, 1),
    "CumSum": _running(jnp.cumsum, 0),
    "Hardmax": _hardmax,
    "LogSoftmax": _log_softmax,
    "ReduceL1": _reduction(lambda x, **over: jnp.abs(x).sum(**over, dtype=x.dtype)),
    "ReduceL2": _reduction(lambda x, **over: jnp.sqrt((x * x).sum(**over)).astype(x.dtype)),
    "ReduceLogSum": _reduction(lambda x, **over: jnp.log(x.sum(**over)).astype(x.dtype)),
    "ReduceLogSumExp": _reduction(lambda x, **over: jax.scipy.special.logsumexp(x, **over).astype(x.dtype)),
    "ReduceMax": _reduction(_extreme(jnp.max, greatest=True)),
    "ReduceMean": _reduction(lambda x, **over: jnp.mean(x, **over).astype(x.dtype)),
    "ReduceMin": _reduction(_extreme(jnp.min, greatest=False)),
    "ReduceProd": _reduction(lambda x, **over: x.prod(**over, dtype=x.dtype)),
    "ReduceSum": _reduction(lambda x, **over: x.sum(**over, dtype=x.dtype)),
    "ReduceSumSquare": _reduction(lambda x, **over: (x * x).sum(**over, dtype=x.dtype)),
    "Softmax": _softmax,
}
