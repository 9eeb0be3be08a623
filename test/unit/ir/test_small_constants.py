"""Integers that are known before a program runs, beside what NumPy makes of the same numbers."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from jaxlib.mlir import ir

from shardpass.ir.dialects import make_context
from shardpass.ir.small_constants import integers_of, known_integers


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
