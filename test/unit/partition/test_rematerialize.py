"""Values made again under another sharding, where that receives less than moving them. Results as on one device."""

from __future__ import annotations

import jax.numpy as jnp
import numpy as np
import pytest
from jax.sharding import PartitionSpec as P
from support.differential import Outcome, check_text
from support.split import check_split

import shardpass

RNG = np.random.default_rng(7)


FREE = "partition{constraints=free}"  # what an annotated op makes may be made again under another sharding


def received(seen: Outcome) -> int:
    return sum(use.bytes_received for use in seen.collectives)


PAIRS = """
module attributes {{mhlo.num_partitions = 4 : i32}} {{
  func.func @main(%x: tensor<{n}xf32> {{mhlo.sharding = "{{devices=[4]<=[4]}}"}})
      -> (tensor<{n}x{n}xf32> {{mhlo.sharding = "{{devices=[4,1]<=[4]}}"}}) {{
    %0 = stablehlo.broadcast_in_dim %x, dims = [0] {{mhlo.sharding = "{{devices=[4,1]<=[4]}}"}}
        : (tensor<{n}xf32>) -> tensor<{n}x{n}xf32>
    %1 = stablehlo.broadcast_in_dim %x, dims = [1] {{mhlo.sharding = "{{devices=[1,4]<=[4]}}"}}
        : (tensor<{n}xf32>) -> tensor<{n}x{n}xf32>
    %2 = stablehlo.subtract %0, %1 {{mhlo.sharding = "{{devices=[4,1]<=[4]}}"}} : tensor<{n}x{n}xf32>
    return %2 : tensor<{n}x{n}xf32>
  }}
}}
"""


@pytest.mark.parametrize("n", [16, 14])
def test_a_broadcast_is_gathered_before(n: int) -> None:
    """Differences of all pairs: the points are gathered, not a matrix of them exchanged."""
    seen = check_text(PAIRS.format(n=n), pipeline=FREE)
    assert seen.kinds == ["all_gather"]
    assert received(seen) == 3 * -(-n // 4) * 4


WIDENED = """
module attributes {{mhlo.num_partitions = 4 : i32}} {{
  func.func @main(%x: tensor<16x64x{narrow}> {{mhlo.sharding = "{{devices=[4,1]<=[4]}}"}})
      -> (tensor<16x64x{wide}> {{mhlo.sharding = "{{devices=[1,4]<=[4]}}"}}) {{
    %0 = stablehlo.convert %x {{mhlo.sharding = "{{devices=[4,1]<=[4]}}"}}
        : (tensor<16x64x{narrow}>) -> tensor<16x64x{wide}>
    %1 = stablehlo.custom_call @Sharding(%0) {{mhlo.sharding = "{{devices=[1,4]<=[4]}}"}}
        : (tensor<16x64x{wide}>) -> tensor<16x64x{wide}>
    return %1 : tensor<16x64x{wide}>
  }}
}}
"""


@pytest.mark.parametrize(("narrow", "wide", "sent"), [("bf16", "f32", 2), ("f32", "bf16", 2), ("i8", "f32", 1)])
def test_the_fewer_bits_are_moved(narrow: str, wide: str, sent: int) -> None:
    """Before a conversion to more bits, after one to fewer."""
    seen = check_text(WIDENED.format(narrow=narrow, wide=wide), pipeline=FREE)
    assert seen.kinds == ["all_to_all"]
    assert received(seen) == 16 * 64 // 16 * 3 * sent


WHOLE_ALREADY = """
module attributes {mhlo.num_partitions = 4 : i32} {
  func.func @main(%x: tensor<64x64xf32> {mhlo.sharding = "{devices=[4,1]<=[4]}"})
      -> (tensor<64x64xf32> {mhlo.sharding = "{replicated}"}, tensor<64x64xf32> {mhlo.sharding = "{replicated}"},
          tensor<64x64xf32> {mhlo.sharding = "{devices=[4,1]<=[4]}"}) {
    %w = stablehlo.custom_call @Sharding(%x) {mhlo.sharding = "{replicated}"} : (tensor<64x64xf32>) -> tensor<64x64xf32>
    %0 = stablehlo.negate %w {mhlo.sharding = "{replicated}"} : tensor<64x64xf32>
    %1 = stablehlo.abs %x {mhlo.sharding = "{devices=[4,1]<=[4]}"} : tensor<64x64xf32>
    %2 = stablehlo.multiply %1, %x {mhlo.sharding = "{devices=[4,1]<=[4]}"} : tensor<64x64xf32>
    return %0, %1, %2 : tensor<64x64xf32>, tensor<64x64xf32>, tensor<64x64xf32>
  }
}
"""


def test_what_an_op_takes_may_be_there_whole() -> None:
    """abs of what was gathered before is computed, not gathered a second time."""
    assert check_text(WHOLE_ALREADY, pipeline=FREE).kinds == ["all_gather"]


def test_what_became_small_is_moved_as_it_is() -> None:
    x = RNG.standard_normal(8).astype(np.float32)

    def function(x: jnp.ndarray) -> jnp.ndarray:
        narrow = x.astype(jnp.int8)
        return narrow * narrow + narrow

    seen = check_split(function, [x], [P("x")], (4,), [P()])
    assert seen.kinds == ["all_gather"]
    assert received(seen) == 3 * 2  # tiles of two bytes


ORDER = """
module attributes {{mhlo.num_partitions = 4 : i32}} {{
  func.func @main(%x: tensor<8x{n}xf32> {{mhlo.sharding = "{{devices=[1,4]<=[4]}}"}})
      -> (tensor<8x{n}xi32> {{mhlo.sharding = "{{devices=[4,1]<=[4]}}"}}) {{
    %0 = stablehlo.iota dim = 1 {{mhlo.sharding = "{{devices=[1,4]<=[4]}}"}} : tensor<8x{n}xi32>
    %1:2 = "stablehlo.sort"(%x, %0) <{{dimension = 1 : i64}}> ({{
    ^bb0(%a: tensor<f32>, %b: tensor<f32>, %c: tensor<i32>, %d: tensor<i32>):
      %2 = stablehlo.compare LT, %a, %b : (tensor<f32>, tensor<f32>) -> tensor<i1>
      stablehlo.return %2 : tensor<i1>
    }}) {{mhlo.sharding = "{{{{devices=[4,1]<=[4]}}, {{devices=[4,1]<=[4]}}}}"}}
        : (tensor<8x{n}xf32>, tensor<8x{n}xi32>) -> (tensor<8x{n}xf32>, tensor<8x{n}xi32>)
    return %1#1 : tensor<8x{n}xi32>
  }}
}}
"""


@pytest.mark.parametrize("n", [64, 61])
def test_an_iota_is_counted_again_not_sent(n: int) -> None:
    """argsort along a split dimension: only the keys move."""
    x = RNG.standard_normal((8, n)).astype(np.float32)
    seen = check_text(ORDER.format(n=n), [x], pipeline=FREE)
    assert seen.kinds == ["all_to_all"]
    assert received(seen) == 3 * 2 * -(-n // 4) * 4
    (found,) = shardpass.compile(seen.module)(x)
    np.testing.assert_array_equal(found, np.argsort(x, axis=1))
