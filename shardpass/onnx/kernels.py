"""What each op of ONNX computes, on JAX arrays: the table of the bridge.

A kernel takes the node, its inputs (None where an optional one is left out) and gives its outputs. Inputs that must be
known when the program is built (axes, shapes, bounds) are NumPy arrays; ``numbers`` refuses others. Semantics are those
of opset 13 and later. The witness is ``onnx.reference``; test/unit/onnx/test_bridge.py holds every row to it.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from shardpass.onnx.model import Node

Array = Any
Kernel = Callable[[Node, Sequence[Any]], tuple[Array, ...]]


class Unsupported(Exception):
    """Why a node of a known op cannot be built."""


def numbers(value: Any, what: str) -> list[int]:
    """The integers of an input that must be constant."""
    if not isinstance(value, np.ndarray):
        raise Unsupported(f"its {what} must be constant")
    return [int(one) for one in value.reshape(-1)]


def _optional(inputs: Sequence[Any], index: int) -> Any:
    return inputs[index] if index < len(inputs) else None


# ------------------------------------------------------------------------------------- elementwise


def _each(function: Callable[..., Array]) -> Kernel:
    return lambda node, inputs: (function(*inputs),)


def _folded(function: Callable[[Array, Array], Array]) -> Kernel:
    def kernel(node: Node, inputs: Sequence[Any]) -> tuple[Array, ...]:
        total = jnp.asarray(inputs[0])
        for one in inputs[1:]:
            total = function(total, one)
        return (total,)

    return kernel


def _divide(a: Array, b: Array) -> Array:
    """Integers are rounded to zero."""
    if not jnp.issubdtype(jnp.result_type(a), jnp.integer):
        return jnp.divide(a, b)
    shape = np.broadcast_shapes(np.shape(a), np.shape(b))
    return jax.lax.div(jnp.broadcast_to(a, shape), jnp.broadcast_to(b, shape))


def _clip(node: Node, inputs: Sequence[Any]) -> tuple[Array, ...]:
    return (jnp.clip(inputs[0], _optional(inputs, 1), _optional(inputs, 2)),)


def _mod(node: Node, inputs: Sequence[Any]) -> tuple[Array, ...]:
    return ((jnp.fmod if node.attributes.get("fmod") else jnp.mod)(*inputs),)


def _cast(node: Node, inputs: Sequence[Any]) -> tuple[Array, ...]:
    from onnx import helper

    return (jnp.asarray(inputs[0]).astype(helper.tensor_dtype_to_np_dtype(node.attributes["to"])),)


def _gelu(node: Node, inputs: Sequence[Any]) -> tuple[Array, ...]:
    return (jax.nn.gelu(inputs[0], approximate=node.attributes.get("approximate", "none") == "tanh"),)


def _dropout(node: Node, inputs: Sequence[Any]) -> tuple[Array, ...]:
    training = _optional(inputs, 2)
    if training is not None and any(numbers(training, "training_mode")):
        raise Unsupported("it drops at random, in training mode")
    return inputs[0], jnp.ones(np.shape(inputs[0]), bool)


# ------------------------------------------------------------------------------------- reductions and products


def _axes(node: Node, inputs: Sequence[Any]) -> list[int] | None:
    """The axes of an op that takes them as an attribute (older opsets) or as its second input; None: not given."""
    if node.attributes.get("axes"):
        return list(node.attributes["axes"])
    given = _optional(inputs, 1)
    return None if given is None else numbers(given, "axes") or None


def _reduction(function: Callable[..., Array]) -> Kernel:
    def kernel(node: Node, inputs: Sequence[Any]) -> tuple[Array, ...]:
        axes = _axes(node, inputs)
        if axes is None and node.attributes.get("noop_with_empty_axes"):
            axes = []
        over = tuple(range(jnp.ndim(inputs[0]))) if axes is None else tuple(axes)
        return (function(jnp.asarray(inputs[0]), axis=over, keepdims=bool(node.attributes.get("keepdims", 1))),)

    return kernel


def _gemm(node: Node, inputs: Sequence[Any]) -> tuple[Array, ...]:
    a, b, c = inputs[0], inputs[1], _optional(inputs, 2)
    product = (a.T if node.attributes.get("transA") else a) @ (b.T if node.attributes.get("transB") else b)
    alpha, beta = node.attributes.get("alpha", 1.0), node.attributes.get("beta", 1.0)
    product = product if alpha == 1.0 else product * jnp.asarray(alpha, product.dtype)
    if c is None:
        return (product,)
    return (product + (c if beta == 1.0 else c * jnp.asarray(beta, product.dtype)),)


def _softmax(node: Node, inputs: Sequence[Any]) -> tuple[Array, ...]:
    return (jax.nn.softmax(inputs[0], axis=node.attributes.get("axis", -1)),)


def _log_softmax(node: Node, inputs: Sequence[Any]) -> tuple[Array, ...]:
    return (jax.nn.log_softmax(inputs[0], axis=node.attributes.get("axis", -1)),)


def _layer_norm(node: Node, inputs: Sequence[Any]) -> tuple[Array, ...]:
    x, scale, bias = inputs[0], inputs[1], _optional(inputs, 2)
    rank = jnp.ndim(x)
    over = tuple(range(node.attributes.get("axis", -1) % rank, rank))
    wide = x.astype(jnp.float32) if jnp.result_type(x) in (jnp.float16, jnp.bfloat16) else x
    mean = wide.mean(over, keepdims=True)
    centred = wide - mean
    inverse = jax.lax.rsqrt((centred * centred).mean(over, keepdims=True) + node.attributes.get("epsilon", 1e-5))
    y = (centred * inverse).astype(jnp.result_type(x)) * scale
    return (y if bias is None else y + bias), mean, inverse


def _einsum(node: Node, inputs: Sequence[Any]) -> tuple[Array, ...]:
    return (jnp.einsum(node.attributes["equation"], *inputs),)


# ------------------------------------------------------------------------------------- shapes and places


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
    axes = _axes(node, inputs)
    return (jnp.squeeze(inputs[0], None if axes is None else tuple(axes)),)


def _unsqueeze(node: Node, inputs: Sequence[Any]) -> tuple[Array, ...]:
    return (jnp.expand_dims(inputs[0], tuple(_axes(node, inputs) or ())),)


def _expand(node: Node, inputs: Sequence[Any]) -> tuple[Array, ...]:
    shape = np.broadcast_shapes(np.shape(inputs[0]), tuple(numbers(inputs[1], "shape")))
    return (jnp.broadcast_to(inputs[0], shape),)


def _gather(node: Node, inputs: Sequence[Any]) -> tuple[Array, ...]:
    array, indices = inputs[0], jnp.asarray(inputs[1])
    axis = node.attributes.get("axis", 0)
    size = np.shape(array)[axis]
    return (jnp.take(array, jnp.where(indices < 0, indices + size, indices), axis=axis, mode="clip"),)


def _concat(node: Node, inputs: Sequence[Any]) -> tuple[Array, ...]:
    return (jnp.concatenate([jnp.asarray(one) for one in inputs], axis=node.attributes["axis"]),)


def _slice(node: Node, inputs: Sequence[Any]) -> tuple[Array, ...]:
    array = inputs[0]
    starts, ends = numbers(inputs[1], "starts"), numbers(inputs[2], "ends")
    axes = list(range(len(starts))) if _optional(inputs, 3) is None else numbers(inputs[3], "axes")
    steps = [1] * len(starts) if _optional(inputs, 4) is None else numbers(inputs[4], "steps")
    cuts = [slice(None)] * jnp.ndim(array)
    for start, end, axis, step in zip(starts, ends, axes, steps, strict=True):
        # an end before the first element: -1 would be the last one to Python
        before_first = step < 0 and end < -np.shape(array)[axis]
        cuts[axis] = slice(start, None if before_first else end, step)
    return (jnp.asarray(array)[tuple(cuts)],)


def _split(node: Node, inputs: Sequence[Any]) -> tuple[Array, ...]:
    axis = node.attributes.get("axis", 0)
    size = np.shape(inputs[0])[axis]
    if _optional(inputs, 1) is not None:
        sizes = numbers(inputs[1], "split")
    else:
        part = -(-size // len(node.outputs))
        sizes = [min(part, size - k * part) for k in range(len(node.outputs))]
    return tuple(jnp.split(inputs[0], np.cumsum(sizes)[:-1].tolist(), axis=axis))


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
    return (np.full(numbers(inputs[0], "shape"), fill[0], fill.dtype),)


def _shape(node: Node, inputs: Sequence[Any]) -> tuple[Array, ...]:
    found = np.asarray(np.shape(inputs[0]), np.int64)
    return (found[node.attributes.get("start", 0) : node.attributes.get("end")],)


KERNELS: Mapping[str, Kernel] = {
    "Abs": _each(jnp.abs),
    "Add": _each(jnp.add),
    "And": _each(jnp.logical_and),
    "Cast": _cast,
    "Ceil": _each(jnp.ceil),
    "Clip": _clip,
    "Concat": _concat,
    "Constant": _constant,
    "ConstantOfShape": _constant_of_shape,
    "Cos": _each(jnp.cos),
    "Div": _each(_divide),
    "Dropout": _dropout,
    "Einsum": _einsum,
    "Equal": _each(jnp.equal),
    "Erf": _each(jax.lax.erf),
    "Exp": _each(jnp.exp),
    "Expand": _expand,
    "Flatten": _flatten,
    "Floor": _each(jnp.floor),
    "Gather": _gather,
    "Gelu": _gelu,
    "Gemm": _gemm,
    "Greater": _each(jnp.greater),
    "GreaterOrEqual": _each(jnp.greater_equal),
    "Identity": _each(lambda x: x),
    "IsNaN": _each(jnp.isnan),
    "LayerNormalization": _layer_norm,
    "Less": _each(jnp.less),
    "LessOrEqual": _each(jnp.less_equal),
    "Log": _each(jnp.log),
    "LogSoftmax": _log_softmax,
    "MatMul": _each(jnp.matmul),
    "Max": _folded(jnp.maximum),
    "Min": _folded(jnp.minimum),
    "Mod": _mod,
    "Mul": _each(jnp.multiply),
    "Neg": _each(jnp.negative),
    "Not": _each(jnp.logical_not),
    "Or": _each(jnp.logical_or),
    "Pow": _each(lambda x, y: jnp.power(x, y).astype(jnp.result_type(x))),
    "Reciprocal": _each(jnp.reciprocal),
    "ReduceL1": _reduction(lambda x, **over: jnp.abs(x).sum(**over)),
    "ReduceL2": _reduction(lambda x, **over: jnp.sqrt((x * x).sum(**over))),
    "ReduceLogSum": _reduction(lambda x, **over: jnp.log(x.sum(**over))),
    "ReduceLogSumExp": _reduction(jax.scipy.special.logsumexp),
    "ReduceMax": _reduction(jnp.max),
    "ReduceMean": _reduction(jnp.mean),
    "ReduceMin": _reduction(jnp.min),
    "ReduceProd": _reduction(jnp.prod),
    "ReduceSum": _reduction(lambda x, **over: x.sum(**over, dtype=x.dtype)),
    "ReduceSumSquare": _reduction(lambda x, **over: (x * x).sum(**over, dtype=x.dtype)),
    "Relu": _each(lambda x: jnp.maximum(x, 0)),
    "Reshape": _reshape,
    "Round": _each(jnp.round),
    "Shape": _shape,
    "Sigmoid": _each(jax.nn.sigmoid),
    "Sign": _each(jnp.sign),
    "Sin": _each(jnp.sin),
    "Slice": _slice,
    "Softmax": _softmax,
    "Split": _split,
    "Sqrt": _each(jnp.sqrt),
    "Squeeze": _squeeze,
    "Sub": _each(jnp.subtract),
    "Sum": _folded(jnp.add),
    "Tanh": _each(jnp.tanh),
    "Transpose": _transpose,
    "Unsqueeze": _unsqueeze,
    "Where": _each(jnp.where),
    "Xor": _each(jnp.logical_xor),
}
