"""The gradient of max pooling along split dimensions, against the whole program on one device."""

from __future__ import annotations

from typing import Any

import jax
import numpy as np
import pytest
from jax import lax
from jax.sharding import PartitionSpec as P
from support.differential import check_text
from support.split import check_split

from shardpass.ops.families.select_and_scatter import Touching

pytestmark = pytest.mark.turns(2)

RNG = np.random.default_rng(17)
SPLITS = [((8,), P(None, "x")), ((4, 2), P(None, "x", "y")), ((2, 3), P("x", None, "y"))]


def distinct(*shape: int) -> np.ndarray:
    return RNG.permutation(int(np.prod(shape))).reshape(shape).astype(np.float32)


def gradient(window: int, stride: int, padding: str) -> Any:
    def pooled(x: Any) -> Any:
        return lax.reduce_window(
            x, -np.float32(np.inf), lax.max, (1, window, window, 1), (1, stride, stride, 1), padding
        )

    def pulled_back(x: Any) -> Any:
        best, pull = jax.vjp(pooled, x)
        return pull(2 * best)[0]

    return pulled_back


@pytest.mark.parametrize(
    ("window", "stride", "padding"), [(2, 2, "VALID"), (3, 2, "SAME"), (3, 1, "SAME"), (2, 3, "VALID"), (5, 2, "VALID")]
)
@pytest.mark.parametrize("size", [(13, 7), (24, 24)])
def test_equal_to_one_device(window: int, stride: int, padding: str, size: tuple[int, int]) -> None:
    x = distinct(2, *size, 2)
    mesh, spec = SPLITS[stride % 3] if size == (13, 7) else SPLITS[window % 3]
    check_split(gradient(window, stride, padding), [x], [spec], mesh, [spec])


def test_windows_that_do_not_meet_need_nothing() -> None:
    x = distinct(2, 32, 8, 2)
    assert check_split(gradient(2, 2, "VALID"), [x], [P(None, "x")], (8,), [P(None, "x")]).kinds == []


PADDED = """
func.func @main(%x: tensor<10x3xf32> {mhlo.sharding = "{devices=[4,1]<=[4]}"},
    %s: tensor<6x3xf32> {mhlo.sharding = "{devices=[4,1]<=[4]}"}) -> tensor<10x3xf32> {
  %z = stablehlo.constant dense<0.0> : tensor<f32>
  %0 = "stablehlo.select_and_scatter"(%x, %s, %z) <{
      padding = dense<[[1, 1], [0, 0]]> : tensor<2x2xi64>,
      window_dimensions = array<i64: 2, 1>, window_strides = array<i64: 2, 1>}> ({
  ^bb0(%a: tensor<f32>, %b: tensor<f32>):
    %1 = stablehlo.compare GE, %a, %b : (tensor<f32>, tensor<f32>) -> tensor<i1>
    stablehlo.return %1 : tensor<i1>
  }, {
  ^bb0(%a: tensor<f32>, %b: tensor<f32>):
    %1 = stablehlo.add %a, %b : tensor<f32>
    stablehlo.return %1 : tensor<f32>
  }) : (tensor<10x3xf32>, tensor<6x3xf32>, tensor<f32>) -> tensor<10x3xf32>
  return %0 : tensor<10x3xf32>
}
"""


def test_a_padded_dimension_is_taken_whole() -> None:
    check_text(PADDED, [distinct(10, 3), distinct(6, 3)])


@pytest.mark.parametrize("count", [2, 3, 4])
@pytest.mark.parametrize(("size", "window", "stride"), [(12, 2, 2), (13, 3, 2), (10, 3, 1), (11, 2, 3), (20, 5, 2)])
def test_every_window_that_touches_a_tile_is_looked_at(count: int, size: int, window: int, stride: int) -> None:
    about = Touching(size, window, stride)
    tile = -(-size // count)
    assert (about.span(count) - window) // stride + 1 == about.number(count)
    for p, first in enumerate(about.first(count)):
        assert first * stride <= p * tile
        assert first * stride + about.span(count) >= (p + 1) * tile
        for number in range(-50, 50):
            touches = number * stride < (p + 1) * tile and number * stride + window > p * tile
            assert not touches or first <= number < first + about.number(count)
