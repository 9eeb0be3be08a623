"""Pooling: the maximum, mean or norm of each window."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping, Sequence
from functools import reduce
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from shardpass.onnx.kernels.common import Array, Kernel, numbers, optional
from shardpass.onnx.kernels.windows import Window, windows
from shardpass.onnx.model import Node


def _pooled(x: Array, places: Sequence[Window], first: Any, function: Callable[..., Array]) -> Array:
    return jax.lax.reduce_window(
        x,
        np.asarray(first, x.dtype),
        function,
        (1, 1, *(w.kernel for w in places)),
        (1, 1, *(w.stride for w in places)),
        [(0, 0), (0, 0), *((w.before, w.after) for w in places)],
        window_dilation=(1, 1, *(w.dilation for w in places)),
    )


def _least(kind: Any) -> Any:
    return -np.inf if jnp.issubdtype(kind, jnp.floating) else jnp.iinfo(kind).min


def _max_pool(node: Node, inputs: Sequence[Any]) -> tuple[Array, ...]:
    x = jnp.asarray(inputs[0])
    places = windows(node, x.shape[2:], node.attributes["kernel_shape"])
    y = _pooled(x, places, _least(x.dtype), jax.lax.max)
    return (y, _indices(node, x, places)) if len(node.outputs) > 1 and node.outputs[1] else (y,)


def _indices(node: Node, x: Array, places: Sequence[Window]) -> Array:
    """Return the index of each window's greatest element, counted over the whole array.

    The elements at one place of all windows are a strided slice of the padded array; the first of the greatest counts.
    """
    pads = [(0, 0, 0), (0, 0, 0), *((w.before, w.after, 0) for w in places)]
    padded = jax.lax.pad(x, np.asarray(_least(x.dtype), x.dtype), pads)
    spatial = x.shape[2:]
    order = range(len(spatial)) if node.attributes.get("storage_order") else range(len(spatial))[::-1]
    steps, step = [0] * len(spatial), 1
    for axis in order:
        steps[axis], step = step, step * spatial[axis]
    values, indices = [], []
    for offsets in itertools.product(*(range(w.kernel) for w in places)):
        starts = [offset * w.dilation for offset, w in zip(offsets, places, strict=True)]
        ends = [start + (w.count - 1) * w.stride + 1 for start, w in zip(starts, places, strict=True)]
        values.append(
            jax.lax.slice(padded, (0, 0, *starts), (*x.shape[:2], *ends), (1, 1, *(w.stride for w in places)))
        )
        at = [
            (np.arange(w.count) * w.stride + start - w.before) * steps[k]
            for k, (w, start) in enumerate(zip(places, starts, strict=True))
        ]
        indices.append(reduce(np.add.outer, at))
    best = jnp.argmax(jnp.stack(values), axis=0)
    table = jnp.asarray(np.stack(indices).astype(np.int64))
    inner = jnp.take_along_axis(table[:, None, None], best[None], axis=0)[0]
    planes = np.arange(x.shape[0] * x.shape[1], dtype=np.int64).reshape(*x.shape[:2], *(1,) * len(spatial))
    return inner + planes * int(np.prod(spatial))


def _average_pool(node: Node, inputs: Sequence[Any]) -> tuple[Array, ...]:
    x = jnp.asarray(inputs[0])
    places = windows(node, x.shape[2:], node.attributes["kernel_shape"])
    padding = bool(node.attributes.get("count_include_pad"))
    counts = reduce(np.multiply.outer, (w.elements(padding) for w in places))
    total = _pooled(x, places, 0, jax.lax.add)
    return (total / np.maximum(counts, 1).astype(x.dtype),)


def _lp_pool(node: Node, inputs: Sequence[Any]) -> tuple[Array, ...]:
    x, p = jnp.asarray(inputs[0]), node.attributes.get("p", 2)
    places = windows(node, x.shape[2:], node.attributes["kernel_shape"])
    return (_root(_pooled(jnp.abs(x) ** p, places, 0, jax.lax.add), p),)


def _root(total: Array, p: int) -> Array:
    return jnp.sqrt(total) if p == 2 else total ** (1.0 / p)


def _global(function: Callable[..., Array]) -> Kernel:
    def kernel(node: Node, inputs: Sequence[Any]) -> tuple[Array, ...]:
        x = jnp.asarray(inputs[0])
        return (function(node, x, tuple(range(2, x.ndim))),)

    return kernel


def _global_lp(node: Node, x: Array, over: tuple[int, ...]) -> Array:
    p = node.attributes.get("p", 2)
    return _root((jnp.abs(x) ** p).sum(over, keepdims=True), p)


def _max_unpool(node: Node, inputs: Sequence[Any]) -> tuple[Array, ...]:
    """Put each element at the place from which the pool selected it, with zeros elsewhere."""
    x, indices, shape = jnp.asarray(inputs[0]), jnp.asarray(inputs[1]), optional(inputs, 2)
    kernel = node.attributes["kernel_shape"]
    strides = node.attributes.get("strides") or [1] * len(kernel)
    pads = node.attributes.get("pads") or [0] * (2 * len(kernel))
    rank = len(kernel)
    sizes = [(x.shape[k + 2] - 1) * strides[k] + kernel[k] - pads[k] - pads[k + rank] for k in range(rank)]
    least = (*x.shape[:2], *sizes)
    flat = jnp.zeros(int(np.prod(least)), x.dtype).at[indices.reshape(-1)].set(x.reshape(-1))
    y = flat.reshape(least)
    if shape is None:
        return (y,)
    wanted = numbers(shape, "output_shape")
    return (jnp.pad(y, [(0, want - have) for want, have in zip(wanted, least, strict=True)]),)


KERNELS: Mapping[str, Kernel] = {
    "AveragePool": _average_pool,
    "GlobalAveragePool": _global(lambda node, x, over: x.mean(over, keepdims=True)),
    "GlobalLpPool": _global(_global_lp),
    "GlobalMaxPool": _global(lambda node, x, over: x.max(over, keepdims=True)),
    "LpPool": _lp_pool,
    "MaxPool": _max_pool,
    "MaxUnpool": _max_unpool,
}
