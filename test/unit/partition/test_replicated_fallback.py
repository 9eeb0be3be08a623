"""Nothing is gathered in silence: each remark names the op, its place, the bytes, and what would avoid it."""

from __future__ import annotations

import numpy as np
import pytest
from support.differential import check_text

import shardpass
from shardpass.diagnostics import Diagnostic, Severity, collect

HEAD = "module attributes {mhlo.num_partitions = 4 : i32} {\n"
MAIN = """func.func @main(%x: tensor<8x6xf32> {{mhlo.sharding = "{split}"}}) -> {kind} {{
  {op}
  return %0 : {kind}
}}
}}
"""
ROWS, COLUMNS = "{devices=[4,1]<=[4]}", "{devices=[1,2,2]<=[4] last_tile_dim_replicate}"


def remarks(text: str) -> list[Diagnostic]:
    with collect() as found:
        shardpass.run_pipeline(text, "partition{effort=0}")
    return [d for d in found if d.severity == Severity.REMARK]


def program(op: str, split: str = ROWS, kind: str = "tensor<8x6xf32>") -> str:
    return HEAD + MAIN.format(split=split, op=op, kind=kind)


def only(text: str) -> Diagnostic:
    (found,) = remarks(text)
    assert found.place.line == 3
    return found


def test_a_call_that_nobody_knows() -> None:
    """8x6 f32 in 4 parts: a device lacks 144 of 192 bytes."""
    found = only(program("%0 = stablehlo.custom_call @unheard_of(%x) : (tensor<8x6xf32>) -> tensor<8x6xf32>"))
    assert found.code == "SP301"
    assert "stablehlo.custom_call @unheard_of is computed in full on every device" in found.message
    assert "no rule says how a call of this target may be split" in found.message
    assert "144 bytes" in found.message
    assert "shardpass.ops" in found.remedy


def test_an_op_with_a_written_reason() -> None:
    op = '%0 = "stablehlo.unary_einsum"(%x) <{einsum_config = "ab->ab"}> : (tensor<8x6xf32>) -> tensor<8x6xf32>'
    found = only(program(op))
    assert found.code == "SP301"
    assert "stablehlo.unary_einsum is computed in full on every device: no longer in the specification" in found.message
    assert "144 bytes" in found.message


def test_what_is_no_array_among_arrays() -> None:
    """A token that goes into a call of somebody's own stays one."""
    op = """%t = stablehlo.create_token : !stablehlo.token
  %0, %1 = stablehlo.optimization_barrier %x, %t : tensor<8x6xf32>, !stablehlo.token
  stablehlo.custom_call @mine(%1) : (!stablehlo.token) -> ()"""
    (found,) = remarks(program(op))
    assert found.code == "SP301"
    assert "some of its operands or results are not arrays; 144 bytes" in found.message


def test_a_loop_that_carries_a_token() -> None:
    """It is partitioned as any loop: the token is a number meanwhile."""
    text = """module attributes {mhlo.num_partitions = 4 : i32} {
func.func @main(%x: tensor<8x6xf32> {mhlo.sharding = "{devices=[4,1]<=[4]}"}) -> tensor<8x6xf32> {
  %t = stablehlo.create_token : !stablehlo.token
  %i = stablehlo.constant dense<0> : tensor<i32>
  %0:3 = stablehlo.while(%a = %i, %b = %x, %c = %t) : tensor<i32>, tensor<8x6xf32>, !stablehlo.token
  cond {
    %n = stablehlo.constant dense<3> : tensor<i32>
    %p = stablehlo.compare LT, %a, %n : (tensor<i32>, tensor<i32>) -> tensor<i1>
    stablehlo.return %p : tensor<i1>
  } do {
    %one = stablehlo.constant dense<1> : tensor<i32>
    %n = stablehlo.add %a, %one : tensor<i32>
    %m = stablehlo.add %b, %x : tensor<8x6xf32>
    %u = stablehlo.after_all %c : !stablehlo.token
    stablehlo.return %n, %m, %u : tensor<i32>, tensor<8x6xf32>, !stablehlo.token
  }
  return %0#1 : tensor<8x6xf32>
}
}
"""
    assert remarks(text) == []
    x = np.arange(48, dtype=np.float32).reshape(8, 6)
    seen = check_text(text, [x])
    np.testing.assert_array_equal(np.asarray(shardpass.compile(seen.module)(x)[0]), 4 * x)


def test_a_region_that_uses_values_from_outside() -> None:
    op = """%s = stablehlo.constant dense<1.0> : tensor<f32>
  %0 = "stablehlo.map"(%x) <{dimensions = array<i64: 0, 1>}> ({
    ^bb0(%a: tensor<f32>):
      %c = stablehlo.add %a, %s : tensor<f32>
      stablehlo.return %c : tensor<f32>
  }) : (tensor<8x6xf32>) -> tensor<8x6xf32>"""
    (found,) = remarks(program(op))
    assert found.code == "SP301"
    assert "its region uses values that are defined outside of it; 144 bytes" in found.message


def test_a_dimension_that_cannot_be_split() -> None:
    """A vector that is sorted, in 2 parts of 4."""
    text = """module attributes {mhlo.num_partitions = 2 : i32} {
func.func @main(%x: tensor<7xf32> {mhlo.sharding = "{devices=[2]<=[2]}"}) -> tensor<7xf32> {
  %0 = "stablehlo.sort"(%x) <{dimension = 0 : i64}> ({
    ^bb0(%a: tensor<f32>, %b: tensor<f32>):
      %c = stablehlo.compare LT, %a, %b : (tensor<f32>, tensor<f32>) -> tensor<i1>
      stablehlo.return %c : tensor<i1>
  }) : (tensor<7xf32>) -> tensor<7xf32>
  return %0 : tensor<7xf32>
}
}
"""
    found = only(text)
    assert found.code == "SP304"
    assert "stablehlo.sort needs dimension 0 of its operand 0 (tensor<7xf32>) in full" in found.message
    assert "16 bytes" in found.message  # the other device's tile of 4
    assert "none of its dimensions can be split here" in found.remedy
    x = np.random.default_rng(1).standard_normal(7).astype(np.float32)
    seen = check_text(text, [x])
    np.testing.assert_array_equal(np.asarray(shardpass.compile(seen.module)(x)[0]), np.sort(x))


def test_updates_that_must_come_in_order() -> None:
    """A scatter that overwrites takes its updates whole, and says so; one that adds does not."""
    text = """module attributes {{mhlo.num_partitions = 4 : i32}} {{
func.func @main(%x: tensor<9x3xf32>, %i: tensor<8x1xi32>,
    %u: tensor<8x3xf32> {{mhlo.sharding = "{{devices=[4,1]<=[4]}}"}}) -> tensor<9x3xf32> {{
  %0 = "stablehlo.scatter"(%x, %i, %u) <{{scatter_dimension_numbers = #stablehlo.scatter<update_window_dims = [1],
      inserted_window_dims = [0], scatter_dims_to_operand_dims = [0], index_vector_dim = 1>}}> ({{
    ^bb0(%a: tensor<f32>, %b: tensor<f32>):
      %c = stablehlo.add %a, %b : tensor<f32>
      stablehlo.return %{result} : tensor<f32>
  }}) : (tensor<9x3xf32>, tensor<8x1xi32>, tensor<8x3xf32>) -> tensor<9x3xf32>
  return %0 : tensor<9x3xf32>
}}
}}
"""
    x, u = np.zeros((9, 3), np.float32), np.arange(24, dtype=np.float32).reshape(8, 3)
    i = np.array([[1], [4], [1], [8], [4], [0], [9], [-1]], np.int32)
    assert remarks(text.format(result="c")) == []
    indices, found = remarks(text.format(result="b"))
    assert indices.code == found.code == "SP304"
    assert "of its operand 1 (tensor<8x1xi32>) in full on each device; 24 bytes" in indices.message
    assert "stablehlo.scatter needs dimension 0 of its operand 2 (tensor<8x3xf32>) in full" in found.message
    assert "72 bytes" in found.message
    assert "split it along dimension 1 instead" in found.remedy
    assert "in their order" in found.remedy
    seen = check_text(text.format(result="b"), [x, i, u])
    expected = x.copy()
    for row, update in zip(i[:, 0], u, strict=True):
        if 0 <= row < 9:
            expected[row] = update
    np.testing.assert_array_equal(np.asarray(shardpass.compile(seen.module)(x, i, u)[0]), expected)


@pytest.mark.parametrize("split", [ROWS, COLUMNS])
def test_what_the_rule_can_split_is_no_finding(split: str) -> None:
    assert remarks(program("%0 = stablehlo.exponential %x : tensor<8x6xf32>", split)) == []


def test_axes_that_find_another_place_are_no_finding() -> None:
    """A sort of rows that are split: the split moves to the other dimension, and nothing is gathered."""
    op = """%0 = "stablehlo.sort"(%x) <{dimension = 0 : i64}> ({
    ^bb0(%a: tensor<f32>, %b: tensor<f32>):
      %c = stablehlo.compare LT, %a, %b : (tensor<f32>, tensor<f32>) -> tensor<i1>
      stablehlo.return %c : tensor<i1>
  }) : (tensor<512x512xf32>) -> tensor<512x512xf32>"""
    text = program(op, kind="tensor<512x512xf32>").replace("tensor<8x6xf32>", "tensor<512x512xf32>")
    assert remarks(text) == []
