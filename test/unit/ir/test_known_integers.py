"""Integers that are known on each device, beside StableHLO's reference evaluation of the same ops on its number."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from shardpass.ir.context import parse_module
from shardpass.ir.known_integers import compute
from shardpass.ir.tensors import operation
from shardpass.runtime.interpreter import evaluate

DEVICES = 6
CASES = {
    "axis index": """
      %c = stablehlo.constant dense<2> : tensor<ui32>
      %n = stablehlo.constant dense<3> : tensor<ui32>
      %1 = stablehlo.divide %id, %c : tensor<ui32>
      %2 = stablehlo.remainder %1, %n : tensor<ui32>
      %r = stablehlo.convert %2 : (tensor<ui32>) -> tensor<i32>""",
    "signed quotients and remainders": """
      %c = stablehlo.constant dense<-2> : tensor<i32>
      %n = stablehlo.constant dense<5> : tensor<i32>
      %1 = stablehlo.convert %id : (tensor<ui32>) -> tensor<i32>
      %2 = stablehlo.subtract %1, %n : tensor<i32>
      %3 = stablehlo.divide %2, %c : tensor<i32>
      %4 = stablehlo.remainder %2, %c : tensor<i32>
      %r = stablehlo.multiply %3, %4 : tensor<i32>""",
    "numbers that wrap": """
      %c = stablehlo.constant dense<4294967295> : tensor<ui32>
      %1 = stablehlo.add %id, %c : tensor<ui32>
      %2 = stablehlo.negate %1 : tensor<ui32>
      %r = stablehlo.convert %2 : (tensor<ui32>) -> tensor<ui8>""",
    "masks": """
      %c = stablehlo.constant dense<3> : tensor<ui32>
      %1 = stablehlo.compare LT, %id, %c : (tensor<ui32>, tensor<ui32>) -> tensor<i1>
      %2 = stablehlo.compare NE, %id, %c : (tensor<ui32>, tensor<ui32>) -> tensor<i1>
      %3 = stablehlo.not %1 : tensor<i1>
      %4 = stablehlo.and %3, %2 : tensor<i1>
      %5 = stablehlo.xor %4, %1 : tensor<i1>
      %6 = stablehlo.or %5, %4 : tensor<i1>
      %7 = stablehlo.select %6, %c, %id : tensor<i1>, tensor<ui32>
      %8 = stablehlo.clamp %id, %7, %c : tensor<ui32>
      %9 = stablehlo.minimum %8, %7 : tensor<ui32>
      %r = stablehlo.maximum %9, %id : tensor<ui32>""",
    "a table of devices": """
      %t = stablehlo.constant dense<[7, 5, 5, -1]> : tensor<4xi32>
      %1 = stablehlo.dynamic_slice %t, %id, sizes = [2] : (tensor<4xi32>, tensor<ui32>) -> tensor<2xi32>
      %2 = stablehlo.abs %1 : tensor<2xi32>
      %3 = stablehlo.sign %1 : tensor<2xi32>
      %4 = stablehlo.concatenate %2, %3, dim = 0 : (tensor<2xi32>, tensor<2xi32>) -> tensor<4xi32>
      %5 = stablehlo.slice %4 [1:4:2] : (tensor<4xi32>) -> tensor<2xi32>
      %6 = stablehlo.broadcast_in_dim %5, dims = [1] : (tensor<2xi32>) -> tensor<3x2xi32>
      %7 = stablehlo.iota dim = 0 : tensor<3x2xi32>
      %8 = stablehlo.add %6, %7 : tensor<3x2xi32>
      %r = stablehlo.reshape %8 : (tensor<3x2xi32>) -> tensor<6xi32>""",
}


def computed(body: str) -> tuple[Any, str]:
    """What the last op of ``body`` is on each device, and its type."""
    module = parse_module("func.func @main() {\n%id = stablehlo.partition_id : tensor<ui32>\n" + body + "\nreturn\n}")
    facts: dict[Any, Any] = {}
    found, kind = None, ""
    with module.context:
        *ops, _ = map(operation, module.body.operations[0].regions[0].blocks[0].operations)
        for op in ops:
            found, kind = compute(op, [facts[v] for v in op.operands], DEVICES), str(op.results[0].type)
            facts[op.results[0]] = found
    return found, kind


@pytest.mark.parametrize("name", CASES)
def test_each_device_computes_what_the_reference_does(name: str) -> None:
    found, kind = computed(CASES[name])
    text = f"func.func @main(%id: tensor<ui32>) -> {kind} {{\n{CASES[name]}\nreturn %r : {kind}\n}}"
    code = parse_module(text).operation.get_asm(binary=False).encode()
    expected = [evaluate(code, [np.uint32(device).reshape(())])[0] for device in range(DEVICES)]
    np.testing.assert_array_equal(np.broadcast_to(found, (DEVICES, *found.shape[1:])), np.stack(expected))
    assert found.dtype == expected[0].dtype


@pytest.mark.parametrize(
    "body",
    [
        # the machine decides what a quotient by zero is
        "%r = stablehlo.divide %id, %id : tensor<ui32>",
        "%r = stablehlo.convert %id : (tensor<ui32>) -> tensor<f32>",
        "%r = stablehlo.broadcast_in_dim %id, dims = [] : (tensor<ui32>) -> tensor<1048576xui32>",
        "%r = stablehlo.power %id, %id : tensor<ui32>",
    ],
)
def test_what_no_rule_knows_is_not_known(body: str) -> None:
    assert computed(body)[0] is None
