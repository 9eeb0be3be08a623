"""Partial sums that go in and out of regions that are manual over some axes; and what is left to be refused."""

from __future__ import annotations

import numpy as np
import pytest

import shardpass
from shardpass.diagnostics import ShardpassError

MESH = '  sdy.mesh @mesh = <["x"=2, "y"=2]>\n'
# %p is summed over y inside of the region, which is manual over y alone
INTO = (
    "module {\n"
    + MESH
    + """
  func.func @main(%a: tensor<4x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}, {"y"}]>}, %b: tensor<8x6xf32>)
      -> tensor<4x6xf32> {
    %0 = stablehlo.dot_general %a, %b, contracting_dims = [1] x [0]
        : (tensor<4x8xf32>, tensor<8x6xf32>) -> tensor<4x6xf32>
    %1 = sdy.manual_computation(%0) in_shardings=[<@mesh, [{?}, {?}], unreduced={"y"}>]
        out_shardings=[<@mesh, [{?}, {?}]>] manual_axes={"y"} (%p: tensor<4x6xf32>) {
      %2 = "stablehlo.all_reduce"(%p) <{channel_handle = #stablehlo.channel_handle<handle = 1, type = 1>,
          replica_groups = dense<[[0, 1], [2, 3]]> : tensor<2x2xi64>, use_global_device_ids}> ({
        ^bb0(%l: tensor<f32>, %r: tensor<f32>):
          %s = stablehlo.add %l, %r : tensor<f32>
          stablehlo.return %s : tensor<f32>
      }) : (tensor<4x6xf32>) -> tensor<4x6xf32>
      sdy.return %2 : tensor<4x6xf32>
    } : (tensor<4x6xf32>) -> tensor<4x6xf32>
    return %1 : tensor<4x6xf32>
  }
}
"""
)
# each device along y returns its columns' sum
OUT_OF = (
    "module {\n"
    + MESH
    + """
  func.func @main(%a: tensor<4x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}, {"y"}]>}) -> tensor<4xf32> {
    %1 = sdy.manual_computation(%a) in_shardings=[<@mesh, [{?}, {"y", ?}]>]
        out_shardings=[<@mesh, [{?}], unreduced={"y"}>] manual_axes={"y"} (%p: tensor<4x4xf32>) {
      %zero = stablehlo.constant dense<0.0> : tensor<f32>
      %2 = stablehlo.reduce(%p init: %zero) applies stablehlo.add across dimensions = [1]
          : (tensor<4x4xf32>, tensor<f32>) -> tensor<4xf32>
      sdy.return %2 : tensor<4xf32>
    } : (tensor<4x8xf32>) -> tensor<4xf32>
    return %1 : tensor<4xf32>
  }
}
"""
)
A = np.arange(32, dtype=np.float32).reshape(4, 8) % 5
B = np.arange(48, dtype=np.float32).reshape(8, 6) % 7


@pytest.mark.parametrize(
    ("text", "given", "wanted"), [(INTO, (A, B), A @ B), (OUT_OF, (A,), A.sum(1))], ids=["in", "out"]
)
def test_regions_that_are_manual_over_some_axes(text: str, given: tuple[np.ndarray, ...], wanted: np.ndarray) -> None:
    (found,) = shardpass.compile(shardpass.run_pipeline(text, "partition"))(*given)
    np.testing.assert_array_equal(np.asarray(found), wanted)


BORDER = (
    "module {\n"
    + MESH
    + """
  func.func @main(%a: tensor<4xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}], unreduced={"y"}>}) -> tensor<4xf32> {
    %0 = stablehlo.negate %a : tensor<4xf32>
    return %0 : tensor<4xf32>
  }
}
"""
)


def test_a_partial_sum_has_no_value_outside_of_a_program() -> None:
    """NumPy has no such array; JAX has."""
    with pytest.raises(ShardpassError, match=r"argument 0 .*\[SP504\]"):
        shardpass.compile(shardpass.run_pipeline(BORDER, "partition"))
