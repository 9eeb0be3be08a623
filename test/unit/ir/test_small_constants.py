"""Integers that are known before a program runs, beside what NumPy makes of the same numbers."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from jaxlib.mlir import ir

from shardpass.ir.dialects import make_context
from shardpass.ir.known_integers import integers_of, known_integers


def constant(value: str, kind: str) -> Any:
    return ir.Operation.parse(f'%0 = "stablehlo.constant"() {{value = dense<{value}> : {kind}}} : () -> {kind}')


@pytest.mark.parametrize(
    ("value", "kind", "expected"),
    [
        ("-3", "tensor<2x2xi32>", np.full((2, 2), -3)),
        ("[1, -2]", "tensor<2xi8>", np.array([1, -2])),
        ("7", "tensor<i64>", np.array(7)),
        ("true", "tensor<3xi1>", np.ones(3, int)),
        ("[true, false]", "tensor<2xi1>", np.array([1, 0])),
        (str(2**63), "tensor<2xui64>", None),
        (f"[1, {2**64 - 1}]", "tensor<2xui64>", None),
        (f"[1, {2**63 - 1}]", "tensor<2xui64>", np.array([1, 2**63 - 1])),
        ("1.0", "tensor<2xf32>", None),
    ],
)
def test_constants(value: str, kind: str, expected: np.ndarray | None) -> None:
    with make_context(), ir.Location.unknown():
        op = constant(value, kind)
        found = known_integers(op.result)
        assert (found is None) == (expected is None)
        if expected is not None:
            np.testing.assert_array_equal(found, expected)
            np.testing.assert_array_equal(integers_of(op), expected)


def test_unsigned_integers_keep_their_size() -> None:
    with make_context(), ir.Location.unknown():
        found = integers_of(constant(f"[1, {2**64 - 1}]", "tensor<2xui64>"))
        assert found is not None
        assert [int(number) for number in found] == [1, 2**64 - 1]


@pytest.mark.parametrize(
    ("source", "target", "expected"),
    [
        ("i32", "i8", [44, -128, -1]),
        ("i32", "ui8", [44, 128, 255]),
        ("i32", "i64", [300, 128, -1]),
        ("i32", "ui64", None),  # -1 becomes a number that 64 bits with a sign do not hold
        ("i32", "i1", [1, 1, 1]),
        ("i32", "f32", None),
    ],
)
def test_conversions_wrap(source: str, target: str, expected: list[int] | None) -> None:
    """Expected are the numbers 300, 128 and -1 modulo 2**width."""
    text = f"""func.func @main() -> tensor<3x{target}> {{
      %0 = stablehlo.constant dense<[300, 128, -1]> : tensor<3x{source}>
      %1 = stablehlo.convert %0 : (tensor<3x{source}>) -> tensor<3x{target}>
      return %1 : tensor<3x{target}>
    }}"""
    with make_context():
        module = ir.Module.parse(text)
        converted = list(module.body.operations[0].regions[0].blocks[0].operations)[1]
        found = known_integers(converted.results[0])
        assert (None if found is None else found.tolist()) == expected


def test_a_rounding_on_the_way_is_not_known() -> None:
    """2049 is no f16."""
    text = """func.func @main() -> tensor<i32> {
      %0 = stablehlo.constant dense<2049> : tensor<i32>
      %1 = stablehlo.convert %0 : (tensor<i32>) -> tensor<f16>
      %2 = stablehlo.convert %1 : (tensor<f16>) -> tensor<i32>
      return %2 : tensor<i32>
    }"""
    with make_context():
        module = ir.Module.parse(text)
        converted = list(module.body.operations[0].regions[0].blocks[0].operations)[2]
        assert known_integers(converted.results[0]) is None
