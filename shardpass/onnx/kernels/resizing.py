"""Resize: a weighted sum of a few elements along each axis, with indices and weights that depend only on sizes.

Example: 2 elements become 4, linear, half_pixel: element 1 of the result lies at (1 + 0.5) / 2 - 0.5 = 0.25, so it is
0.75 of element 0 and 0.25 of element 1.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import jax.numpy as jnp
import numpy as np

from shardpass.onnx.kernels.common import Array, Kernel, Unsupported, constant, numbers, optional
from shardpass.onnx.model import Node


@dataclass(frozen=True, slots=True)
class _Axis:
    """The resizing of one axis from ``size`` to ``count`` elements, by the factor ``scale``, of the part ``roi``."""

    axis: int
    size: int
    count: int
    scale: float
    roi: tuple[float, float]

    @property
    def stays(self) -> bool:
        return self.count == self.size and math.isclose(self.scale, 1.0) and self.roi == (0.0, 1.0)


def _resize(node: Node, inputs: Sequence[Any]) -> tuple[Array, ...]:
    x = jnp.asarray(inputs[0])
    is_float = jnp.issubdtype(x.dtype, jnp.floating)
    nearest = node.attributes.get("mode", "nearest") == "nearest"
    y = x if is_float or nearest else x.astype(jnp.float32)
    for axis in _resized_axes(node, inputs, x.shape):
        if not axis.stays:
            y = _along(node, y, axis)
    if is_float or nearest:
        return (y,)
    limits = jnp.iinfo(x.dtype)
    return (jnp.clip(y, limits.min, limits.max).astype(x.dtype),)


def _resized_axes(node: Node, inputs: Sequence[Any], shape: Sequence[int]) -> list[_Axis]:
    """Return the axes, for inputs X, roi, scales and sizes; opset 10 has X and scales."""
    older = len(inputs) == 2
    axes = [axis % len(shape) for axis in node.attributes.get("axes") or range(len(shape))]
    roi = None if older else _present(optional(inputs, 1), "roi")
    scales = _present(optional(inputs, 1 if older else 2), "scales")
    sizes = _present(optional(inputs, 3), "sizes")
    if node.attributes.get("coordinate_transformation_mode") != "tf_crop_and_resize" or roi is None:
        roi = np.repeat([0.0, 1.0], len(axes))
    if sizes is not None:
        counts = numbers(sizes, "sizes")
        factors = [count / shape[axis] for count, axis in zip(counts, axes, strict=True)]
        policy = node.attributes.get("keep_aspect_ratio_policy", "stretch")
        if policy != "stretch":
            factors = [(min if policy == "not_larger" else max)(factors)] * len(axes)
            counts = [int(factor * shape[axis] + 0.5) for factor, axis in zip(factors, axes, strict=True)]
    elif scales is not None:
        factors = [float(factor) for factor in scales]
        counts = [math.floor(factor * shape[axis]) for factor, axis in zip(factors, axes, strict=True)]
    else:
        raise Unsupported("it has neither scales nor sizes")
    parts = [(float(roi[k]), float(roi[k + len(axes)])) for k in range(len(axes))]
    return [
        _Axis(axis, shape[axis], count, factor, part)
        for axis, count, factor, part in zip(axes, counts, factors, parts, strict=True)
    ]


def _present(value: Any, what: str) -> Any:
    """Return an input; None if the input is absent or has no elements."""
    return None if value is None or 0 in np.shape(value) else constant(value, what)


def _along(node: Node, x: Array, axis: _Axis) -> Array:
    at, outside = _coordinates(node.attributes.get("coordinate_transformation_mode", "half_pixel"), axis)
    left = np.floor(at).astype(np.int64)
    ratios = np.where(at == left, 1.0, at - left)  # an element that lies on another counts as right of the one before
    left = np.where(at == left, left - 1, left)
    weights, first = _weights(node, ratios, axis.scale)
    places = left[:, None] + first + np.arange(weights.shape[1])
    if node.attributes.get("exclude_outside"):
        weights = np.where((places < 0) | (places >= axis.size), 0.0, weights)
        weights = weights / weights.sum(1, keepdims=True)
    places = np.clip(places, 0, axis.size - 1)
    if node.attributes.get("mode", "nearest") == "nearest":
        y = jnp.take(x, places[np.arange(axis.count), weights.argmax(1)], axis=axis.axis)
    else:
        shape = [-1 if k == axis.axis else 1 for k in range(x.ndim)]
        taps = [
            jnp.take(x, places[:, k], axis=axis.axis) * weights[:, k].reshape(shape).astype(x.dtype)
            for k in range(weights.shape[1])
            if weights[:, k].any()
        ]
        y = sum(taps[1:], taps[0])
    if not outside.any():
        return y
    mask = outside.reshape([-1 if k == axis.axis else 1 for k in range(x.ndim)])
    return jnp.where(mask, np.asarray(node.attributes.get("extrapolation_value", 0.0), x.dtype), y)


def _coordinates(mode: str, axis: _Axis) -> tuple[np.ndarray, np.ndarray]:
    """Return each result element's place among the array's elements, and which lie outside of the cut."""
    y = np.arange(axis.count, dtype=np.float64)
    length, last = axis.scale * axis.size, axis.size - 1
    outside = np.zeros(axis.count, bool)
    if mode == "align_corners":
        at = np.zeros(axis.count) if length == 1 else y * last / (length - 1)
    elif mode == "asymmetric":
        at = y / axis.scale
    elif mode == "tf_crop_and_resize":
        start, end = axis.roi
        at = np.full(axis.count, (end - start) * last / 2) if length == 1 else y * (end - start) * last / (length - 1)
        at = at + start * last
        outside = (at < 0) | (at > last)
    elif mode == "pytorch_half_pixel" and length == 1:
        at = np.full(axis.count, -0.5)
    elif mode in ("half_pixel", "pytorch_half_pixel"):
        at = (y + 0.5) / axis.scale - 0.5
    elif mode == "half_pixel_symmetric":
        at = axis.size / 2 * (1 - axis.count / length) + (y + 0.5) / axis.scale - 0.5
    else:
        raise Unsupported(f"its coordinate_transformation_mode '{mode}' is unknown")
    return at, outside


def _weights(node: Node, ratios: np.ndarray, scale: float) -> tuple[np.ndarray, int]:
    """Return the weights of the elements around each place, and the first of them, counted from the left neighbour."""
    mode = node.attributes.get("mode", "nearest")
    if mode == "nearest":
        return _nearest(node.attributes.get("nearest_mode", "round_prefer_floor"), ratios), 0
    shrink = min(scale, 1.0) if node.attributes.get("antialias") else 1.0
    reach = {"linear": 1, "cubic": 2}[mode]
    first = math.floor(-reach / shrink) + 1
    distances = np.abs(np.arange(first, 2 - first)[: 2 - 2 * first] - ratios[:, None]) * shrink
    if mode == "linear":
        weights = np.clip(1 - distances, 0, 1)
    else:
        a, d = node.attributes.get("cubic_coeff_a", -0.75), distances
        near = ((a + 2) * d - (a + 3)) * d * d + 1
        far = ((a * d - 5 * a) * d + 8 * a) * d - 4 * a
        weights = np.where(d <= 1, near, np.where(d < 2, far, 0.0))
    return (weights / weights.sum(1, keepdims=True) if shrink < 1 else weights), first


def _nearest(mode: str, ratios: np.ndarray) -> np.ndarray:
    whole = ratios == 1.0
    right = {
        "round_prefer_floor": ratios > 0.5,
        "round_prefer_ceil": ratios >= 0.5,
        "floor": whole,
        "ceil": np.ones(len(ratios), bool),
    }.get(mode)
    if right is None:
        raise Unsupported(f"its nearest_mode '{mode}' is unknown")
    right = right | whole
    return np.stack([~right, right], 1).astype(np.float64)


def _upsample(node: Node, inputs: Sequence[Any]) -> tuple[Array, ...]:
    """Resize as opset 9's op, with elements at y / scale."""
    attributes = {"coordinate_transformation_mode": "asymmetric", "nearest_mode": "floor", **node.attributes}
    return _resize(node.with_attributes(attributes), inputs)


KERNELS: Mapping[str, Kernel] = {"Resize": _resize, "Upsample": _upsample}
