"""Kernels of the ONNX bridge beside onnx's reference evaluator: cases written shortly, and how one is run."""

from __future__ import annotations

from typing import Any

import numpy as np
from onnx import helper
from onnx.reference import ReferenceEvaluator

from shardpass.onnx import read_model, to_stablehlo
from shardpass.runtime import compile_single
from support.onnx_models import N, model

F, L, B, U8, I8, I32 = np.float32, np.int64, np.bool_, np.uint8, np.int8, np.int32


def whole(*shape: int) -> tuple[tuple[int, ...], Any]:
    """An input of floats."""
    return shape, F


def case(
    *inputs: Any, attributes: dict | None = None, outputs: int = 1, opset: int = 23, domain: str = "", **constants: Any
) -> tuple:
    """Inputs as (shape, dtype) or as arrays, None for those left out; constants follow them, in order."""
    return inputs, attributes or {}, constants, outputs, opset


X = whole(2, 3, 4)
ONE, TWO = [case(X)], [case(X, whole(3, 1)), case(whole(4), X)]


def each(names: str, cases: list[tuple]) -> dict[str, list[tuple]]:
    """The same cases for several ops."""
    return dict.fromkeys(names.split(), cases)


def draw(shape: tuple[int, ...], dtype: Any, rng: np.random.Generator) -> np.ndarray:
    """Positive floats: logarithms, powers and roots of all ops exist."""
    if dtype is F:
        return rng.uniform(0.5, 1.5, shape).astype(F)
    if dtype is B:
        return rng.integers(0, 2, shape).astype(B)
    if dtype is L:
        return rng.integers(1, 5, shape) * rng.choice([-1, 1], shape)
    return rng.integers(0, 100, shape).astype(dtype)


def same(result: Any, expected: Any) -> None:
    """Shapes, types and values are equal, floats up to rounding."""
    result, expected = np.asarray(result), np.asarray(expected)
    assert result.shape == expected.shape
    assert result.dtype == expected.dtype
    if expected.dtype.kind in "biu":
        np.testing.assert_array_equal(result, expected)
    else:
        np.testing.assert_allclose(result.astype(np.float64), expected.astype(np.float64), rtol=2e-5, atol=2e-5)


def built(op: str, one: tuple) -> tuple[Any, dict[str, np.ndarray]]:
    """The model of a case, and values for its inputs."""
    inputs, attributes, constants, outputs, opset = one
    rng = np.random.default_rng(0)
    values, names = {}, []
    for k, given in enumerate(inputs):
        names.append("" if given is None else f"x{k}")
        if given is not None:
            values[f"x{k}"] = given if isinstance(given, np.ndarray) else draw(*given, rng)
    known = {
        name: value
        if isinstance(value, np.ndarray)
        else np.asarray(value, None if isinstance(value, np.generic) else L)
        for name, value in constants.items()
        if value is not None
    }
    names += ["" if value is None else name for name, value in constants.items()]
    nodes = [N(op, names, [f"y{k}" for k in range(outputs)], {}, attributes)]
    proto = model(nodes, {name: v.shape for name, v in values.items()}, constants=known, opset=opset)
    for info, value in zip(proto.graph.input, values.values(), strict=True):
        info.type.tensor_type.elem_type = helper.np_dtype_to_tensor_dtype(value.dtype)
    return proto, values


def bridged(proto: Any, values: dict[str, np.ndarray]) -> list[np.ndarray]:
    """The outputs of a model that became StableHLO and was run by XLA on one device."""
    program = to_stablehlo(read_model(proto.SerializeToString(), "m.onnx"))
    return [np.asarray(value) for value in compile_single(program.text)(*program.arguments(values))]


def check(op: str, one: tuple) -> None:
    """A case computes what onnx's reference evaluator computes."""
    proto, values = built(op, one)
    expected = ReferenceEvaluator(proto).run(None, values)
    for result, want in zip(bridged(proto, values), expected, strict=True):
        same(result, want)
