"""What nothing uses is erased, with the regions that it holds."""

from __future__ import annotations

import gc

import pytest

import shardpass

DEAD = """
module attributes {mhlo.num_partitions = 2 : i32} {
func.func @main(%x: tensor<8xf32> {mhlo.sharding = "{devices=[2]<=[2]}"}, %p: tensor<i1>) -> tensor<8xf32> {
  %0 = "stablehlo.if"(%p) ({
    %z = stablehlo.constant dense<0.0> : tensor<f32>
    %r = stablehlo.reduce(%x init: %z) applies stablehlo.add across dimensions = [0]
        : (tensor<8xf32>, tensor<f32>) -> tensor<f32>
    %s = "stablehlo.sort"(%x) <{dimension = 0 : i64}> ({
      ^bb0(%a: tensor<f32>, %b: tensor<f32>):
        %c = stablehlo.compare LT, %a, %b : (tensor<f32>, tensor<f32>) -> tensor<i1>
        stablehlo.return %c : tensor<i1>
    }) : (tensor<8xf32>) -> tensor<8xf32>
    stablehlo.return %x : tensor<8xf32>
  }, {
    %n = stablehlo.negate %x : tensor<8xf32>
    stablehlo.return %n : tensor<8xf32>
  }) : (tensor<i1>) -> tensor<8xf32>
  %m = "stablehlo.map"(%0) <{dimensions = array<i64: 0>}> ({
    ^bb0(%a: tensor<f32>):
      %c = stablehlo.abs %a : tensor<f32>
      stablehlo.return %c : tensor<f32>
  }) : (tensor<8xf32>) -> tensor<8xf32>
  return %0 : tensor<8xf32>
}
}
"""


@pytest.mark.parametrize("turn", range(8))
def test_ops_that_hold_regions_are_erased_whole(turn: int) -> None:
    """Their blocks are gone with them: looked at after that, they would end the process, now and then."""
    module = shardpass.run_pipeline(DEAD, "import")
    gc.collect()
    text = str(module)
    for gone in ("stablehlo.reduce", "stablehlo.sort", "stablehlo.map", "stablehlo.abs"):
        assert gone not in text
    assert "stablehlo.negate" in text


REGION = """
module {
  sdy.mesh @mesh = <["x"=2]>
  func.func @main(%x: tensor<4xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}]>}) -> tensor<4xf32> {
    %0 = sdy.manual_computation(%x) in_shardings=[<@mesh, [{"x"}]>] out_shardings=[<@mesh, [{"x"}]>]
        manual_axes={"x"} (%t: tensor<2xf32>) {
      %c = stablehlo.constant dense<[1.0, 2.0]> : tensor<2xf32>
      %1 = stablehlo.add %t, %c : tensor<2xf32>
      %2 = stablehlo.multiply %1, %c : tensor<2xf32>
      %3 = stablehlo.add %2, %c : tensor<2xf32>
      sdy.return %3 : tensor<2xf32>
    } : (tensor<4xf32>) -> tensor<4xf32>
    return %0 : tensor<4xf32>
  }
}
"""


def test_constants_of_a_manual_region_are_copied() -> None:
    """A copy of a constant is an op as any other to the steps that follow."""
    text = str(shardpass.run_pipeline(REGION, "import"))
    assert text.count("stablehlo.constant") == 3


GROUP = """
module attributes {mhlo.num_partitions = 4 : i32} {
  sdy.mesh @mesh = <["x"=4]>
  func.func @main(%x: tensor<8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}]>}) -> tensor<8xf32> {
    %0 = stablehlo.iota dim = 0 : tensor<8xf32>
    sdy.sharding_group %x group_id=0 : tensor<8xf32>
    sdy.sharding_group %0 group_id=0 : tensor<8xf32>
    %1 = stablehlo.negate %0 : tensor<8xf32>
    return %1 : tensor<8xf32>
  }
}
"""


def test_a_constant_of_a_sharding_group_is_one_for_all_uses() -> None:
    """A copy would stand alone in the group, and what is computed from the other would know nothing of it."""
    text = str(shardpass.run_pipeline(GROUP, "shardpass-import,shardpass-propagate"))
    assert text.count("stablehlo.iota") == 1
    (negated,) = (line for line in text.splitlines() if "stablehlo.negate" in line)
    assert '"{devices=[4]<=[4]}"' in negated
