"""Programs in which redistributions wait, leave loops, or turn sums into parts of sums: results as on one device."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from support.differential import check_text

import shardpass

ROWS, WHOLE = "{devices=[4,1]<=[4]}", "{replicated}"

FEWER_BITS = """
func.func @main(%x: tensor<6x9xf32> {mhlo.sharding = "{devices=[4,1]<=[4]}"})
    -> (tensor<6x4xbf16> {mhlo.sharding = "{replicated}"}) {
  %0 = stablehlo.custom_call @Sharding(%x) {mhlo.sharding = "{replicated}"} : (tensor<6x9xf32>) -> tensor<6x9xf32>
  %1 = stablehlo.slice %0 [0:6, 2:9:2] : (tensor<6x9xf32>) -> tensor<6x4xf32>
  %2 = stablehlo.convert %1 : (tensor<6x4xf32>) -> tensor<6x4xbf16>
  return %2 : tensor<6x4xbf16>
}
"""

SUM = """
func.func @main(%x: tensor<8x12xf32> {{mhlo.sharding = "{{devices=[1,4]<=[4]}}"}},
                %w: tensor<12x8xf32> {{mhlo.sharding = "{{devices=[4,1]<=[4]}}"}})
    -> (tensor<8x8xf32> {{mhlo.sharding = "{result}"}}) {{
  %0 = stablehlo.dot_general %x, %w, contracting_dims = [1] x [0]
    : (tensor<8x12xf32>, tensor<12x8xf32>) -> tensor<8x8xf32>
  %1 = stablehlo.custom_call @Sharding(%0) {{mhlo.sharding = "{{replicated}}"}} : (tensor<8x8xf32>) -> tensor<8x8xf32>
  %2 = stablehlo.negate %1 : tensor<8x8xf32>
  return %2 : tensor<8x8xf32>
}}
"""

LOOP = """
func.func @main(%w: tensor<6x6xf32> {{mhlo.sharding = "{weights}"}}, %x: tensor<10x6xf32> {{mhlo.sharding = "{rows}"}})
    -> (tensor<10x6xf32> {{mhlo.sharding = "{rows}"}}) {{
  %zero = stablehlo.constant dense<0> : tensor<i32>
  %0:3 = stablehlo.while(%v = %w, %i = %zero, %h = %x) : tensor<6x6xf32>, tensor<i32>, tensor<10x6xf32>
  cond {{
    %three = stablehlo.constant dense<3> : tensor<i32>
    %1 = stablehlo.compare LT, %i, %three, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
    stablehlo.return %1 : tensor<i1>
  }} do {{
    %n = stablehlo.negate %v : tensor<6x6xf32>
    %1 = stablehlo.dot_general %h, %n, contracting_dims = [1] x [0]
      : (tensor<10x6xf32>, tensor<6x6xf32>) -> tensor<10x6xf32>
    %2 = stablehlo.clamp %1, %1, %1 : tensor<10x6xf32>
    %one = stablehlo.constant dense<1> : tensor<i32>
    %3 = stablehlo.add %i, %one : tensor<i32>
    stablehlo.return %v, %3, %2 : tensor<6x6xf32>, tensor<i32>, tensor<10x6xf32>
  }}
  return %0#2 : tensor<10x6xf32>
}}
"""


def test_fewer_elements_and_bits_are_gathered() -> None:
    """6 rows are 4 tiles of 2: the others' 3 x 2 x 4 elements of 2 bytes."""
    seen = check_text(FEWER_BITS, interpreter=True)
    assert [use.bytes_received for use in seen.collectives] == [3 * 2 * 4 * 2]


@pytest.mark.parametrize(
    ("result", "kinds"),
    [
        (ROWS, ["reduce_scatter"]),
        ("{devices=[2,2]<=[4]}", ["reduce_scatter", "reduce_scatter"]),
        ("{devices=[2,1,2]<=[4] last_tile_dim_replicate}", ["all_reduce", "reduce_scatter"]),
        ("{devices=[4,1]0,2,1,3}", None),  # an order that the sum's groups may or may not follow
        (WHOLE, ["all_reduce"]),
    ],
)
def test_parts_of_a_sum(result: str, kinds: Sequence[str] | None) -> None:
    seen = check_text(SUM.format(result=result), interpreter=True)
    assert kinds is None or seen.kinds == kinds


@pytest.mark.parametrize("weights", [ROWS, "{devices=[1,4]<=[4]}", "{devices=[2,2]<=[4]}"])
def test_weights_of_a_loop(weights: str) -> None:
    """One product: its weights are whole where most is alive, so they are gathered once, before the loop."""
    seen = check_text(LOOP.format(weights=weights, rows=ROWS), interpreter=True)
    assert seen.kinds
    assert all(use.times == 1 and not use.unknown_loops for use in seen.collectives)


def test_a_stride_along_one_row_means_nothing_along_more() -> None:
    """Before the rows are split each device holds two of them; the slice said a stride of the one that it had."""
    text = """module attributes {mhlo.num_partitions = 2 : i32, shardpass.mesh = "mesh['a'=2]"} {
      func.func public @main(%x: tensor<2x6x2xf32>) -> tensor<1x2x4xf32> {
        %0 = stablehlo.custom_call @shardpass.redistribute(%x) {shardpass.from = "{mesh['a'=2], [{}, {}, {'a'}]}",
          shardpass.to = "{mesh['a'=2], [{'a'}, {}, {}]}", shardpass.global_type = tensor<2x6x4xf32>}
          : (tensor<2x6x2xf32>) -> tensor<1x6x4xf32>
        %1 = stablehlo.slice %0 [0:1:3, 2:4, 0:4] : (tensor<1x6x4xf32>) -> tensor<1x2x4xf32>
        return %1 : tensor<1x2x4xf32>
      }
    }"""
    moved = str(shardpass.run_pipeline(text, "builtin.module(shardpass-defer)"))
    assert "stablehlo.slice %x [0:2, 2:4, 0:2]" in moved or "stablehlo.slice %arg0 [0:2, 2:4, 0:2]" in moved
