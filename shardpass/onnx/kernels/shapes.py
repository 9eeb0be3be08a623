"""Ops that only move or reshape elements, and ops that make arrays from numbers."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from shardpass.onnx.kernels.common import (
    MOST_FOLDED,
    Array,
    Kernel,
    Unsupported,
    axes_of,
    constant,
    dtype_of,
    numbers,
    optional,
)
from shardpass.onnx.model import Node


def _transpose(node: Node, inputs: Sequence[Any]) -> tuple[Array, ...]:
    return (jnp.transpose(inputs[0], node.attributes.get("perm")),)


def _reshape(node: Node, inputs: Sequence[Any]) -> tuple[Array, ...]:
    old, new = np.shape(inputs[0]), numbers(inputs[1], "shape")
    if not node.attributes.get("allowzero"):
        new = [old[k] if size == 0 else size for k, size in enumerate(new)]
    return (jnp.reshape(inputs[0], new),)


def _flatten(node: Node, inputs: Sequence[Any]) -> tuple[Array, ...]:
    shape, axis = np.shape(inputs[0]), node.attributes.get("axis", 1)
    axis += len(shape) if axis < 0 else 0
    return (jnp.reshape(inputs[0], (math.prod(shape[:axis]), math.prod(shape[axis:]))),)


def _squeeze(node: Node, inputs: Sequence[Any]) -> tuple[Array, ...]:
    axes = axes_of(node, inputs)
    return (jnp.squeeze(inputs[0], None if axes is None else tuple(axes)),)


def _unsqueeze(node: Node, inputs: Sequence[Any]) -> tuple[Array, ...]:
    return (jnp.expand_dims(inputs[0], tuple(axes_of(node, inputs) or ())),)


def _expand(node: Node, inputs: Sequence[Any]) -> tuple[Array, ...]:
    shape = np.broadcast_shapes(np.shape(inputs[0]), tuple(numbers(inputs[1], "shape")))
    return (jnp.broadcast_to(inputs[0], shape),)


def _tile(node: Node, inputs: Sequence[Any]) -> tuple[Array, ...]:
    return (jnp.tile(inputs[0], numbers(inputs[1], "repeats")),)


def _concat(node: Node, inputs: Sequence[Any]) -> tuple[Array, ...]:
    return (jnp.concatenate([jnp.asarray(value) for value in inputs], axis=node.attributes["axis"]),)


def _slice(node: Node, inputs: Sequence[Any]) -> tuple[Array, ...]:
    array = inputs[0]
    starts, ends = numbers(inputs[1], "starts"), numbers(inputs[2], "ends")
    axes = list(range(len(starts))) if optional(inputs, 3) is None else numbers(inputs[3], "axes")
    steps = [1] * len(starts) if optional(inputs, 4) is None else numbers(inputs[4], "steps")
    cuts = [slice(None)] * jnp.ndim(array)
    for start, end, axis, step in zip(starts, ends, axes, steps, strict=True):
        # an end before the first element: -1 would be the last one to Python
        before_first = step < 0 and end < -np.shape(array)[axis]
        cuts[axis] = slice(start, None if before_first else end, step)
    return (jnp.asarray(array)[tuple(cuts)],)


def parts(array: Any, axis: int, split: Any, count: int) -> list[Array]:
    """Split an array along an axis: into the sizes in ``split``, or ``count`` even parts, the last smaller."""
    size = np.shape(array)[axis]
    if split is not None:
        sizes = numbers(split, "split")
    else:
        part = -(-size // count)
        sizes = [max(0, min(part, size - k * part)) for k in range(count)]
    return list(jnp.split(jnp.asarray(array), np.cumsum(sizes)[:-1].tolist(), axis=axis))


def _split(node: Node, inputs: Sequence[Any]) -> tuple[Array, ...]:
    split = optional(inputs, 1)
    return tuple(parts(inputs[0], node.attributes.get("axis", 0), split, len(node.outputs)))


def _pad(node: Node, inputs: Sequence[Any]) -> tuple[Array, ...]:
    array, given = jnp.asarray(inputs[0]), numbers(inputs[1], "pads")
    axes = list(range(array.ndim)) if optional(inputs, 3) is None else numbers(inputs[3], "axes")
    pads = [(0, 0)] * array.ndim
    for k, axis in enumerate(axes):
        pads[axis] = given[k], given[k + len(axes)]
    mode = node.attributes.get("mode", "constant")
    if mode == "constant":
        fill = optional(inputs, 2)
        value = jnp.zeros((), array.dtype) if fill is None else jnp.reshape(jnp.asarray(fill), ()).astype(array.dtype)
        return (jax.lax.pad(array, value, [(before, after, 0) for before, after in pads]),)
    cuts = tuple(
        slice(max(0, -before), size - max(0, -after)) for (before, after), size in zip(pads, array.shape, strict=True)
    )
    more = [(max(0, before), max(0, after)) for before, after in pads]
    return (jnp.pad(array[cuts], more, mode=mode),)


def _trilu(node: Node, inputs: Sequence[Any]) -> tuple[Array, ...]:
    array, offset = jnp.asarray(inputs[0]), optional(inputs, 1)
    rows, columns = (jax.lax.broadcasted_iota(np.int64, array.shape[-2:], axis) for axis in (0, 1))
    place = columns - rows
    bound = 0 if offset is None else jnp.reshape(jnp.asarray(offset), ())
    keep = place >= bound if node.attributes.get("upper", 1) else place <= bound
    return (jnp.where(keep, array, jnp.zeros((), array.dtype)),)


def _reverse_sequence(node: Node, inputs: Sequence[Any]) -> tuple[Array, ...]:
    """Reverse the first elements of each row; the length of the row gives their number."""
    array, lengths = jnp.asarray(inputs[0]), jnp.asarray(inputs[1])
    batch, time = node.attributes.get("batch_axis", 1), node.attributes.get("time_axis", 0)
    places = jax.lax.broadcasted_iota(np.int64, array.shape, time)
    shape = [1] * array.ndim
    shape[batch] = -1
    count = lengths.reshape(shape)
    return (jnp.take_along_axis(array, jnp.where(places < count, count - 1 - places, places), axis=time),)


def _depth_to_space(node: Node, inputs: Sequence[Any]) -> tuple[Array, ...]:
    x, block = jnp.asarray(inputs[0]), node.attributes["blocksize"]
    n, c, h, w = x.shape
    if node.attributes.get("mode", "DCR") == "DCR":
        y = x.reshape(n, block, block, c // block**2, h, w).transpose(0, 3, 4, 1, 5, 2)
    else:
        y = x.reshape(n, c // block**2, block, block, h, w).transpose(0, 1, 4, 2, 5, 3)
    return (y.reshape(n, c // block**2, h * block, w * block),)


def _space_to_depth(node: Node, inputs: Sequence[Any]) -> tuple[Array, ...]:
    x, block = jnp.asarray(inputs[0]), node.attributes["blocksize"]
    n, c, h, w = x.shape
    order = (0, 3, 5, 1, 2, 4) if node.attributes.get("mode", "DCR") == "DCR" else (0, 1, 3, 5, 2, 4)
    y = x.reshape(n, c, h // block, block, w // block, block).transpose(order)
    return (y.reshape(n, c * block**2, h // block, w // block),)


# ------------------------------------------------------------------------------------- arrays from numbers


def _constant(node: Node, inputs: Sequence[Any]) -> tuple[Array, ...]:
    from onnx import numpy_helper

    for name, value in node.attributes.items():
        if name == "value":
            return (numpy_helper.to_array(value),)
        if name in ("value_int", "value_ints"):
            return (np.asarray(value, np.int64),)
        if name in ("value_float", "value_floats"):
            return (np.asarray(value, np.float32),)
    raise Unsupported("its value is text, or sparse")


def _constant_of_shape(node: Node, inputs: Sequence[Any]) -> tuple[Array, ...]:
    from onnx import numpy_helper

    fill = numpy_helper.to_array(node.attributes["value"]) if "value" in node.attributes else np.zeros(1, np.float32)
    shape = numbers(inputs[0], "shape")
    make = np.full if math.prod(shape) <= MOST_FOLDED else jnp.full  # a large one is a broadcast in the program
    return (make(shape, fill.reshape(-1)[0], fill.dtype),)


def _shape(node: Node, inputs: Sequence[Any]) -> tuple[Array, ...]:
    sizes = np.asarray(np.shape(inputs[0]), np.int64)
    return (sizes[node.attributes.get("start", 0) : node.attributes.get("end")],)


def _size(node: Node, inputs: Sequence[Any]) -> tuple[Array, ...]:
    return (np.asarray(math.prod(np.shape(inputs[0])), np.int64),)


def _range(node: Node, inputs: Sequence[Any]) -> tuple[Array, ...]:
    start, limit, step = (
        constant(value, name) for value, name in zip(inputs, ("start", "limit", "delta"), strict=True)
    )
    count = max(0, math.ceil((float(limit.reshape(())) - float(start.reshape(()))) / float(step.reshape(()))))
    return ((start.reshape(()) + np.arange(count).astype(start.dtype) * step.reshape(())).astype(start.dtype),)


def _eye_like(node: Node, inputs: Sequence[Any]) -> tuple[Array, ...]:
    kind = dtype_of(node.attributes["dtype"]) if "dtype" in node.attributes else np.dtype(jnp.result_type(inputs[0]))
    rows, columns = np.shape(inputs[0])
    return (np.eye(rows, columns, node.attributes.get("k", 0)).astype(kind),)


def _one_hot(node: Node, inputs: Sequence[Any]) -> tuple[Array, ...]:
    indices, values = jnp.asarray(inputs[0]), jnp.asarray(inputs[2])
    depth = numbers(inputs[1], "depth")[0]
    axis = node.attributes.get("axis", -1) % (indices.ndim + 1)
    indices = jnp.expand_dims(jnp.where(indices < 0, indices + depth, indices), axis)
    shape = [depth if k == axis else 1 for k in range(indices.ndim)]
    places = np.arange(depth).reshape(shape).astype(indices.dtype)
    return (jnp.where(indices == places, values[1], values[0]),)


KERNELS: Mapping[str, Kernel] = {
    "Concat": _concat,
    "Constant": _constant,
    "ConstantOfShape": _constant_of_shape,
    "DepthToSpace": _depth_to_space,
    "Expand": _expand,
    "EyeLike": _eye_like,
    "Flatten": _flatten,
    "OneHot": _one_hot,
    "Pad": _pad,
    "Range": _range,
    "Reshape": _reshape,
    "ReverseSequence": _reverse_sequence,
    "Shape": _shape,
    "Size": _size,
    "Slice": _slice,
    "SpaceToDepth": _space_to_depth,
    "Split": _split,
    "Squeeze": _squeeze,
    "Tile": _tile,
    "Transpose": _transpose,
    "Trilu": _trilu,
    "Unsqueeze": _unsqueeze,
}
