"""reduce_window split along its windows, against the whole program on one device."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax
from jax.sharding import PartitionSpec as P
from support.differential import draw
from support.split import check_split

import shardpass

pytestmark = pytest.mark.turns(2)

RNG = np.random.default_rng(13)
SPLITS = [
    ((8,), P(None, "x")),
    ((4, 2), P(None, "x", "y")),
    ((2, 4), P("x", "y")),
    ((2, 3), P("x", None, "y")),
]


def pool(
    x: Any, op: Any = lax.add, init: float = 0, window: Any = (1, 3, 3, 1), strides: Any = (1, 2, 2, 1), **options: Any
) -> Any:
    options = {"padding": "SAME", **options}
    return lax.reduce_window(x, np.float32(init), op, window, strides, **options)


def both_ends(x: Any) -> Any:
    """The greatest and the least of each window in one op."""

    def join(a: Any, b: Any) -> Any:
        return jnp.maximum(a[0], b[0]), jnp.minimum(a[1], b[1])

    initial, window, padding = (np.float32(-9), np.float32(7)), (1, 3, 2, 1), [(0, 0), (-1, 0), (0, 0), (0, 0)]
    return lax.reduce_window((x, -x), initial, join, window, (1, 2, 2, 1), padding)


POOLS: dict[str, Callable[[Any], Any]] = {
    "sums": pool,
    "greatest": lambda x: pool(x, lax.max, -np.inf, strides=(1, 1, 1, 1)),
    "no padding": lambda x: pool(x, lax.max, -np.inf, (1, 2, 2, 1), padding="VALID"),
    "base dilated": lambda x: pool(x, base_dilation=(1, 2, 3, 1)),
    "window dilated": lambda x: pool(x, window_dilation=(1, 2, 2, 1)),
    "an initial value that counts": lambda x: pool(x, init=2, padding="VALID"),
    "an initial value that counts, padded": lambda x: pool(x, init=2),
    "cut at the ends": lambda x: pool(x, padding=[(0, 0), (-1, -2), (-2, 1), (0, 0)]),
    "cut between what is dilated": lambda x: pool(
        x, lax.max, 2.0, base_dilation=(1, 2, 3, 1), padding=[(0, 0), (-3, 1), (-2, -4), (0, 0)]
    ),
    "of the user's": lambda x: pool(x, lambda a, b: jnp.abs(a) + jnp.abs(b)),
    "two operands": both_ends,
}


@pytest.mark.parametrize("size", [(16, 12), (13, 7)])
@pytest.mark.parametrize("name", POOLS)
def test_equal_to_one_device(name: str, size: tuple[int, int]) -> None:
    x = draw(RNG, (4, *size, 2), np.float32)
    for mesh, spec in SPLITS[:2] if size == (16, 12) else SPLITS[1:]:
        check_split(POOLS[name], [x], [spec], mesh)


@pytest.mark.parametrize("name", ["sums", "greatest", "base dilated", "window dilated"])
def test_on_the_reference_interpreter(name: str) -> None:
    x = draw(RNG, (1, 11, 6, 1), np.float32)
    check_split(POOLS[name], [x], [P(None, "x")], (4,), [P(None, "x")], interpreter=True)


@pytest.mark.parametrize(("low", "high"), [(-1, 0), (0, -2), (-3, -1)])
def test_a_window_of_one_element_that_padding_cuts(low: int, high: int) -> None:
    """XLA ends the process on the whole program, so NumPy is the witness."""
    left = f"tensor<{8 + low + high}xf32>"
    text = f"""
        module attributes {{mhlo.num_partitions = 4 : i32}} {{
          func.func @main(%x: tensor<8xf32> {{mhlo.sharding = "{{devices=[4]<=[4]}}"}}) -> {left} {{
            %two = stablehlo.constant dense<2.0> : tensor<f32>
            %0 = "stablehlo.reduce_window"(%x, %two) <{{window_dimensions = array<i64: 1>,
                padding = dense<[[{low}, {high}]]> : tensor<1x2xi64>}}> ({{
            ^bb0(%a: tensor<f32>, %b: tensor<f32>):
              %1 = stablehlo.maximum %a, %b : tensor<f32>
              stablehlo.return %1 : tensor<f32>
            }}) : (tensor<8xf32>, tensor<f32>) -> {left}
            return %0 : {left}
          }}
        }}"""
    x = np.arange(8, dtype=np.float32)
    (found,) = shardpass.compile(shardpass.run_pipeline(text, "partition"))(x)
    np.testing.assert_array_equal(found, np.maximum(x, 2)[-low : 8 + high])


SCANS: dict[str, Callable[[Any], Any]] = {
    "sum": lambda x: lax.cumsum(x, 0),
    "sum from the end": lambda x: lax.cumsum(x, 0, reverse=True),
    "product": lambda x: lax.cumprod(x, 0),
    "greatest": lambda x: lax.cummax(x, 0),
    "least from the end": lambda x: lax.cummin(x, 0, reverse=True),
    "of both dimensions": lambda x: lax.cummax(lax.cumsum(x, 0), 1, reverse=True),
}


@pytest.mark.parametrize(("rows", "mesh", "spec"), [(24, (8,), P("x")), (27, (4, 2), P("x", "y")), (3, (2, 3), P("y"))])
@pytest.mark.parametrize("name", SCANS)
def test_scans(name: str, rows: int, mesh: tuple[int, ...], spec: P) -> None:
    check_split(SCANS[name], [draw(RNG, (rows, 5), np.float32)], [spec], mesh, [spec])


def test_scans_of_one_element_or_of_fewer_than_devices() -> None:
    for rows in (1, 3):
        check_split(SCANS["sum"], [draw(RNG, (rows, 5), np.float32)], [P("x")], (8,))


@pytest.mark.parametrize("name", SCANS)
def test_scans_on_the_reference_interpreter(name: str) -> None:
    check_split(SCANS[name], [draw(RNG, (10, 3), np.float32)], [P("x")], (4,), [P("x")], interpreter=True)


@pytest.mark.parametrize("dtype", [np.int32, np.uint8, np.float16, np.complex64])
def test_scans_of_element_types(dtype: Any) -> None:
    def scan(x: Any) -> Any:
        return lax.reduce_window(x, np.zeros((), dtype), lax.add, (10, 1), (1, 1), ((9, 0), (0, 0)))

    check_split(scan, [draw(RNG, (10, 3), dtype)], [P("x")], (4,), [P("x")])


@pytest.mark.parametrize(("join", "identity"), [(lax.bitwise_and, -1), (lax.bitwise_or, 0), (lax.max, -(2**31))])
def test_scans_of_bits(join: Any, identity: int) -> None:
    def scan(x: Any) -> Any:
        return lax.reduce_window(x, np.int32(identity), join, (19, 1), (1, 1), ((18, 0), (0, 0)))

    bits = RNG.integers(-(2**31), 2**31, (19, 40)).astype(np.int32)
    seen = check_split(scan, [bits | (RNG.integers(0, 4, bits.shape) > 0) * np.int32(-2)], [P("x")], (8,), [P("x")])
    assert [use.result for use in seen.collectives] == ["tensor<8x40xi32>"]  # the totals of the tiles


def test_a_scan_gathers_one_element_of_each_tile() -> None:
    seen = check_split(
        lambda x: lax.cumsum(x, 1), [draw(RNG, (16, 4096), np.float32)], [P(None, "x")], (8,), [P(None, "x")]
    )
    assert seen.kinds == ["all_gather"]
    assert seen.collectives[0].bytes_received == 7 * 16 * 4


def test_pooling_takes_what_its_windows_span() -> None:
    """3x3 with stride 2 over tiles of 8 rows: one row of the neighbour, no gather; 2x2 nothing."""
    x = draw(RNG, (4, 64, 64, 2), np.float32)
    seen = check_split(POOLS["sums"], [x], [P(None, "x")], (8,), [P(None, "x")])
    assert seen.kinds == ["collective_permute"]
    assert seen.collectives[0].bytes_received == 4 * 64 * 2 * 4
    assert check_split(POOLS["no padding"], [x], [P(None, "x")], (8,), [P(None, "x")]).kinds == []
