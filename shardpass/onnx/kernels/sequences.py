"""Sequences and optional values: lists of arrays that exist only while the program is built."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import jax.numpy as jnp
import numpy as np

from shardpass.onnx.kernels.common import Array, Kernel, numbers, optional
from shardpass.onnx.kernels.shapes import parts
from shardpass.onnx.model import Node


class Absent:
    """An optional value without content."""


def _insert(node: Node, inputs: Sequence[Any]) -> tuple[Array, ...]:
    items = list(inputs[0])
    place = optional(inputs, 2)
    at = len(items) if place is None else numbers(place, "position")[0]
    items.insert(at, inputs[1])
    return (items,)


def _erase(node: Node, inputs: Sequence[Any]) -> tuple[Array, ...]:
    items = list(inputs[0])
    place = optional(inputs, 1)
    del items[-1 if place is None else numbers(place, "position")[0]]
    return (items,)


def _concat(node: Node, inputs: Sequence[Any]) -> tuple[Array, ...]:
    join = jnp.stack if node.attributes.get("new_axis") else jnp.concatenate
    return (join([jnp.asarray(item) for item in inputs[0]], axis=node.attributes["axis"]),)


def _split(node: Node, inputs: Sequence[Any]) -> tuple[Array, ...]:
    """Split into parts of the given sizes; for one size, the last part may be smaller; by default, into single
    elements.
    """
    array, split, axis = inputs[0], optional(inputs, 1), node.attributes.get("axis", 0)
    size = np.shape(array)[axis]
    if split is None:
        items = parts(array, axis, None, size)
        keep = node.attributes.get("keepdims", 1)
        return (items if keep else [jnp.squeeze(item, axis) for item in items],)
    given = numbers(split, "split")
    if np.ndim(split) == 0:
        given = [min(given[0], size - start) for start in range(0, size, given[0])]
    return (parts(array, axis, np.asarray(given), len(given)),)


KERNELS: Mapping[str, Kernel] = {
    "ConcatFromSequence": _concat,
    "Optional": lambda node, inputs: (inputs[0] if inputs else Absent(),),
    "OptionalGetElement": lambda node, inputs: (inputs[0],),
    "OptionalHasElement": lambda node, inputs: (np.asarray(bool(inputs) and not isinstance(inputs[0], Absent | None)),),
    "SequenceAt": lambda node, inputs: (inputs[0][numbers(inputs[1], "position")[0]],),
    "SequenceConstruct": lambda node, inputs: (list(inputs),),
    "SequenceEmpty": lambda node, inputs: ([],),
    "SequenceErase": _erase,
    "SequenceInsert": _insert,
    "SequenceLength": lambda node, inputs: (np.asarray(len(inputs[0]), np.int64),),
    "SplitToSequence": _split,
}
