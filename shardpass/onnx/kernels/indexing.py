"""Ops that read or write at indices given by another input, and ops that sort."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from shardpass.onnx.kernels.common import Array, Kernel, Unsupported, numbers, optional
from shardpass.onnx.model import Node


def _counted(indices: Any, size: int) -> Array:
    """Restate negative indices from the front."""
    indices = jnp.asarray(indices)
    return jnp.where(indices < 0, indices + size, indices)


def _gather(node: Node, inputs: Sequence[Any]) -> tuple[Array, ...]:
    axis = node.attributes.get("axis", 0)
    return (jnp.take(inputs[0], _counted(inputs[1], np.shape(inputs[0])[axis]), axis=axis, mode="clip"),)


def _gather_elements(node: Node, inputs: Sequence[Any]) -> tuple[Array, ...]:
    """Gather elements; the result has the indices' shape, which may be shorter than the data along other axes too."""
    array, axis = jnp.asarray(inputs[0]), node.attributes.get("axis", 0)
    indices = _counted(inputs[1], array.shape[axis])
    return (array[_places(indices, axis % array.ndim)],)


def _places(indices: Array, axis: int) -> tuple[Array, ...]:
    """Return the index of every axis: the given index along ``axis``, each element's own index along the others."""
    own = [jax.lax.broadcasted_iota(indices.dtype, indices.shape, k) for k in range(indices.ndim)]
    own[axis] = indices
    return tuple(own)


def _written(array: Array, places: tuple[Array, ...], updates: Any, how: str) -> Array:
    at = array.at[places]
    write = {"none": at.set, "add": at.add, "mul": at.multiply, "max": at.max, "min": at.min}.get(how)
    if write is None:
        raise Unsupported(f"its reduction '{how}' is unknown")
    return write(updates)


def _scatter_elements(node: Node, inputs: Sequence[Any]) -> tuple[Array, ...]:
    array, axis = jnp.asarray(inputs[0]), node.attributes.get("axis", 0)
    indices = _counted(inputs[1], array.shape[axis])
    how = node.attributes.get("reduction", "none")
    return (_written(array, _places(indices, axis % array.ndim), inputs[2], how),)


def _gather_nd(node: Node, inputs: Sequence[Any]) -> tuple[Array, ...]:
    array, indices, batch = jnp.asarray(inputs[0]), jnp.asarray(inputs[1]), node.attributes.get("batch_dims", 0)
    return (array[_nd_places(array, indices, batch)],)


def _nd_places(array: Array, indices: Array, batch: int) -> tuple[Array, ...]:
    """Return the indices of the leading axes, each shaped like ``indices`` without its last axis."""
    shape = indices.shape[:-1]
    own = [jax.lax.broadcasted_iota(indices.dtype, shape, k) for k in range(batch)]
    given = [_counted(indices[..., k], array.shape[batch + k]) for k in range(indices.shape[-1])]
    return (*own, *given)


def _scatter_nd(node: Node, inputs: Sequence[Any]) -> tuple[Array, ...]:
    array, indices = jnp.asarray(inputs[0]), jnp.asarray(inputs[1])
    return (_written(array, _nd_places(array, indices, 0), inputs[2], node.attributes.get("reduction", "none")),)


def _tensor_scatter(node: Node, inputs: Sequence[Any]) -> tuple[Array, ...]:
    """Write the update after the cache's content along one axis, at a separate place for each batch."""
    array, update, starts = jnp.asarray(inputs[0]), jnp.asarray(inputs[1]), optional(inputs, 2)
    axis = node.attributes.get("axis", -2) % array.ndim
    first = jnp.zeros(array.shape[0], np.int64) if starts is None else jnp.asarray(starts)
    shape = (-1,) + (1,) * (array.ndim - 1)
    places = jax.lax.broadcasted_iota(first.dtype, update.shape, axis) + first.reshape(shape)
    if node.attributes.get("mode", "linear") == "circular":
        places = places % array.shape[axis]
    return (_written(array, _places(places, axis), update, "none"),)


def _top_k(node: Node, inputs: Sequence[Any]) -> tuple[Array, ...]:
    """Select the greatest elements; of equal elements, the first."""
    array, count = jnp.asarray(inputs[0]), numbers(inputs[1], "k")[0]
    axis = node.attributes.get("axis", -1)
    moved = jnp.moveaxis(array, axis, -1)
    if node.attributes.get("largest", 1):
        values, indices = jax.lax.top_k(moved, count)
    else:
        places = jax.lax.broadcasted_iota(np.int64, moved.shape, moved.ndim - 1)
        values, indices = (
            jax.lax.slice_in_dim(one, 0, count, axis=-1)
            for one in jax.lax.sort((moved, places), num_keys=1, is_stable=True)
        )
    return jnp.moveaxis(values, -1, axis), jnp.moveaxis(indices, -1, axis).astype(np.int64)


def _compress(node: Node, inputs: Sequence[Any]) -> tuple[Array, ...]:
    """Select elements; the number of selected elements must be constant."""
    axis = node.attributes.get("axis")
    chosen = np.flatnonzero(numbers(inputs[1], "condition"))
    array = jnp.ravel(inputs[0]) if axis is None else jnp.asarray(inputs[0])
    return (jnp.take(array, chosen, axis=axis or 0),)


def _non_zero(node: Node, inputs: Sequence[Any]) -> tuple[Array, ...]:
    if not isinstance(inputs[0], np.ndarray):
        raise Unsupported("the shape of its result depends on its input")
    return (np.asarray(np.nonzero(inputs[0]), np.int64),)


KERNELS: Mapping[str, Kernel] = {
    "Compress": _compress,
    "Gather": _gather,
    "GatherElements": _gather_elements,
    "GatherND": _gather_nd,
    "NonZero": _non_zero,
    "Scatter": _scatter_elements,
    "ScatterElements": _scatter_elements,
    "ScatterND": _scatter_nd,
    "TensorScatter": _tensor_scatter,
    "TopK": _top_k,
}
