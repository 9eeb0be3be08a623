"""Shared parts of kernels: their type, the refusal of a node, and the reading of constants."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from shardpass.onnx.model import Node

Array = Any
Kernel = Callable[[Node, Sequence[Any]], tuple[Array, ...]]

MOST_FOLDED = 4096  # elements of a constant that the program holds as such


class Unsupported(Exception):
    """Raised with the reason for which a node of a known op cannot be built."""


def numbers(value: Any, what: str) -> list[int]:
    """Return the integers of an input that must be constant."""
    return [int(number) for number in constant(value, what).reshape(-1)]


def constant(value: Any, what: str) -> np.ndarray:
    """Return an input that must be constant."""
    if not isinstance(value, np.ndarray | np.generic):
        raise Unsupported(f"its {what} must be constant")
    return np.asarray(value)


def optional(inputs: Sequence[Any], index: int) -> Any:
    """Return the input number ``index``; None if the node omits the input."""
    return inputs[index] if index < len(inputs) else None


def each(function: Callable[..., Array]) -> Kernel:
    """Make the kernel of an op that depends only on its inputs."""
    return lambda node, inputs: (function(*inputs),)


def axes_of(node: Node, inputs: Sequence[Any]) -> list[int] | None:
    """Return the axes of an op from an attribute (older opsets) or the second input; None if absent."""
    if node.attributes.get("axes"):
        return list(node.attributes["axes"])
    given = optional(inputs, 1)
    return None if given is None else numbers(given, "axes") or None


def dtype_of(number: int) -> np.dtype[Any]:
    """Return NumPy's type for an element type of ONNX."""
    from onnx import helper

    try:
        kind: np.dtype[Any] = np.dtype(helper.tensor_dtype_to_np_dtype(number))
    except (KeyError, TypeError, ValueError):
        raise Unsupported(f"the element type number {number} is none of NumPy's") from None
    return kind
