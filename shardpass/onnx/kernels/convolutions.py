"""Convolutions, and their transposes, in floats and in quantized integers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import jax
import jax.numpy as jnp

from shardpass.onnx.kernels.common import Array, Kernel, optional
from shardpass.onnx.kernels.normalizations import per_channel
from shardpass.onnx.kernels.products import requantized
from shardpass.onnx.kernels.windows import windows
from shardpass.onnx.model import Node


def _convolved(node: Node, x: Array, kernel: Array, **options: Any) -> Array:
    places = windows(node, x.shape[2:], kernel.shape[2:])
    return jax.lax.conv_general_dilated(
        x,
        kernel,
        [w.stride for w in places],
        [(w.before, w.after) for w in places],
        rhs_dilation=[w.dilation for w in places],
        feature_group_count=node.attributes.get("group", 1),
        **options,
    )


def _conv(node: Node, inputs: Sequence[Any]) -> tuple[Array, ...]:
    x, kernel, bias = jnp.asarray(inputs[0]), jnp.asarray(inputs[1]), optional(inputs, 2)
    y = _convolved(node, x, kernel)
    return (y if bias is None else y + per_channel(bias, y.ndim),)


def _conv_integer(node: Node, inputs: Sequence[Any]) -> tuple[Array, ...]:
    x = _centred(inputs[0], optional(inputs, 2), 1)
    kernel = _centred(inputs[1], optional(inputs, 3), 0)
    return (_convolved(node, x, kernel, preferred_element_type=jnp.int32),)


def _centred(array: Any, zero: Any, axis: int) -> Array:
    """Subtract the zero point from the integers; a kernel may have a zero point for each output channel."""
    wide = jnp.asarray(array).astype(jnp.int32)
    if zero is None:
        return wide
    zero = jnp.asarray(zero).astype(jnp.int32)
    shape = [1] * wide.ndim
    shape[axis] = -1
    return wide - zero.reshape(shape)


def _qlinear_conv(node: Node, inputs: Sequence[Any]) -> tuple[Array, ...]:
    x, x_scale, x_zero, kernel, k_scale, k_zero, y_scale, y_zero = inputs[:8]
    bias = optional(inputs, 8)
    y = _convolved(node, _centred(x, x_zero, 1), _centred(kernel, k_zero, 0), preferred_element_type=jnp.int32)
    if bias is not None:
        y = y + per_channel(bias, y.ndim)
    factor = per_channel(jnp.ravel(jnp.asarray(k_scale)), y.ndim) * x_scale / y_scale
    return (requantized(y, factor, y_zero),)


def _conv_transpose(node: Node, inputs: Sequence[Any]) -> tuple[Array, ...]:
    """Compute a transposed convolution: the array is dilated between its elements, and the kernel reversed."""
    x, kernel, bias = jnp.asarray(inputs[0]), jnp.asarray(inputs[1]), optional(inputs, 2)
    group, rank = node.attributes.get("group", 1), x.ndim - 2
    strides = list(node.attributes.get("strides") or [1] * rank)
    dilations = list(node.attributes.get("dilations") or [1] * rank)
    extents = [(size - 1) * dilation + 1 for size, dilation in zip(kernel.shape[2:], dilations, strict=True)]
    extra = list(node.attributes.get("output_padding") or [0] * rank)
    pads = _transposed_pads(node, x.shape[2:], extents, strides, extra)
    channels, outputs = kernel.shape[:2]
    turned = jnp.flip(kernel, range(2, kernel.ndim)).reshape(group, channels // group, outputs, *kernel.shape[2:])
    turned = jnp.swapaxes(turned, 1, 2).reshape(group * outputs, channels // group, *kernel.shape[2:])
    y = jax.lax.conv_general_dilated(
        x,
        turned,
        [1] * rank,
        [
            (extent - 1 - before, extent - 1 - after + more)
            for extent, (before, after), more in zip(extents, pads, extra, strict=True)
        ],
        lhs_dilation=strides,
        rhs_dilation=dilations,
        feature_group_count=group,
    )
    return (y if bias is None else y + per_channel(bias, y.ndim),)


def _transposed_pads(
    node: Node, sizes: Sequence[int], extents: Sequence[int], strides: Sequence[int], extra: Sequence[int]
) -> list[tuple[int, int]]:
    """Return the elements to cut off before and after, along each axis."""
    rank, auto = len(sizes), node.attributes.get("auto_pad", "NOTSET")
    wanted = node.attributes.get("output_shape")
    if wanted is None and auto in ("SAME_UPPER", "SAME_LOWER"):
        wanted = [size * stride for size, stride in zip(sizes, strides, strict=True)]
    if wanted is None:
        given = list(node.attributes.get("pads") or [0] * (2 * rank))
        return [(0, 0) if auto == "VALID" else (given[k], given[k + rank]) for k in range(rank)]
    pads = []
    for k, size in enumerate(list(wanted)[-rank:]):
        total = strides[k] * (sizes[k] - 1) + extra[k] + extents[k] - size
        half = total // 2
        pads.append((half, total - half) if auto == "SAME_UPPER" else (total - half, half))
    return pads


KERNELS: Mapping[str, Kernel] = {
    "Conv": _conv,
    "ConvInteger": _conv_integer,
    "ConvTranspose": _conv_transpose,
    "QLinearConv": _qlinear_conv,
}
