"""One update, in bounds or out of them, of an operand whose tiles a dynamic_slice cuts: XLA folded the two wrongly."""

from __future__ import annotations

import numpy as np
import pytest
from support.differential import check_text

import shardpass

pytestmark = pytest.mark.turns(2)

TEXT = """
module attributes {{mhlo.num_partitions = 6 : i32}} {{
func.func @main(%i: tensor<1x2xi32>, %u: tensor<1xi32>, %x: tensor<16x8xi32>) -> tensor<16x8xi32> {{
  %0 = "stablehlo.scatter"(%x, %i, %u) <{{scatter_dimension_numbers = #stablehlo.scatter<
      inserted_window_dims = [0, 1], scatter_dims_to_operand_dims = [1, 0], index_vector_dim = 1>}}> ({{
    ^bb0(%p: tensor<i32>, %q: tensor<i32>):
      %r = stablehlo.{op} %p, %q : tensor<i32>
      stablehlo.return %{result} : tensor<i32>
  }}) {{mhlo.sharding = "{split}"}} : (tensor<16x8xi32>, tensor<1x2xi32>, tensor<1xi32>) -> tensor<16x8xi32>
  %1 = stablehlo.negate %0 : tensor<16x8xi32>
  return %1 : tensor<16x8xi32>
}}
}}
"""
SPLITS = ["{devices=[1,6]<=[2,3]T(1,0)}", "{devices=[6,1]<=[6]}", "{devices=[3,2]<=[6]}"]
PLACES = [(0, -1), (2, -1), (7, 15), (3, 4), (8, 0), (-1, -1), (5, 16)]


@pytest.mark.parametrize("split", SPLITS)
@pytest.mark.parametrize(("op", "result"), [("minimum", "r"), ("add", "r"), ("add", "q")])
def test_out_of_bounds_nothing_changes(split: str, op: str, result: str) -> None:
    text = TEXT.format(op=op, result=result, split=split)
    x = np.arange(128, dtype=np.int32).reshape(16, 8)
    executable = shardpass.compile(shardpass.run_pipeline(text, "partition"))
    for column, row in PLACES:
        given = [np.array([[column, row]], np.int32), np.array([-9], np.int32), x]
        expected = x.copy()
        if 0 <= column < 8 and 0 <= row < 16:
            expected[row, column] = {"r": {"minimum": -9, "add": x[row, column] - 9}[op], "q": -9}[result]
        np.testing.assert_array_equal(np.asarray(executable(*given)[0]), -expected, err_msg=f"at {row}, {column}")
    check_text(text, [np.array([[2, -1]], np.int32), np.array([-9], np.int32), x], interpreter=True)
