"""sort and top_k, split along the ordered dimension and beside it, against one device."""

from __future__ import annotations

from typing import Any

import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax
from jax.sharding import PartitionSpec as P
from support.differential import draw
from support.split import check_split

pytestmark = pytest.mark.turns(2)

MESHES = [(8,), (4, 2), (2, 3)]
RNG = np.random.default_rng(9)


def best(k: int) -> Any:
    return lambda x: lax.top_k(x, k)


@pytest.mark.parametrize("mesh", MESHES)
@pytest.mark.parametrize(("size", "k"), [(960, 3), (963, 3), (190, 1), (1000, 200)])
def test_top_k_of_a_split_dimension(mesh: tuple[int, ...], size: int, k: int) -> None:
    """Small whole numbers: many are equal, and the lower position comes first. Only candidates travel."""
    seen = check_split(best(k), [draw(RNG, (6, size), np.float32)], [P(None, "x")], mesh)
    if k < 10:
        assert set(seen.kinds) == {"all_gather"}
        assert sum(use.bytes_received for use in seen.collectives) == (mesh[0] - 1) * 6 * k * (4 + 4)


@pytest.mark.parametrize("size", [61, 63])
def test_padding_is_less_than_the_least(size: int) -> None:
    """Of four tiles of 16 the last holds 13 or 15; all numbers are below the zeros that padding may hold."""
    x = -1 - RNG.permutation(5 * size).reshape(5, size).astype(np.float32)
    check_split(best(3), [x], [P(None, "x")], (4,))


@pytest.mark.parametrize(("size", "masked"), [(64, False), (61, True), (63, True)])
def test_only_padding_is_masked(size: int, masked: bool) -> None:
    seen = check_split(best(3), [draw(RNG, (5, size), np.float32)], [P(None, "x")], (4,))
    assert ("stablehlo.select" in str(seen.module)) is masked


@pytest.mark.parametrize("mesh", [(4, 2), (2, 3)])
def test_top_k_split_both_ways(mesh: tuple[int, int]) -> None:
    x = draw(RNG, (5, 7, 300), np.int32)
    seen = check_split(best(4), [x], [P("x", None, "y")], mesh, [P("x"), P("x")])
    assert set(seen.kinds) == {"all_gather"}
    candidates = -(-5 // mesh[0]) * 7 * 4  # of a device, each a number and a position
    assert sum(use.bytes_received for use in seen.collectives) == (mesh[1] - 1) * candidates * (4 + 4)


def test_tiles_shorter_than_k() -> None:
    """20 over 8 devices are tiles of 3, one of them all padding; the best 11 need several."""
    check_split(best(11), [draw(RNG, (2, 20), np.float32)], [P(None, "x")], (8,))


def test_top_k_of_one_dimension() -> None:
    check_split(best(3), [RNG.permutation(5000).astype(np.float32)], [P("x")], (2, 3))


def test_padding_loses_against_everything() -> None:
    x = np.full((1, 50), -np.inf, np.float32)
    x[0, 7], x[0, 31] = np.nan, -np.nan
    check_split(best(49), [x], [P(None, "x")], (8,))
    check_split(best(49), [np.full((1, 50), -(2**31), np.int32)], [P(None, "x")], (8,))


@pytest.mark.parametrize("dtype", ["int8", "uint8", "int32", "uint32", "float16", "bfloat16"])
def test_top_k_of_every_element_type(dtype: str) -> None:
    check_split(best(2), [draw(RNG, (2, 500), jnp.dtype(dtype))], [P(None, "x")], (2, 3))


@pytest.mark.parametrize("mesh", MESHES)
@pytest.mark.parametrize("rows", [48, 25])
def test_sort(mesh: tuple[int, ...], rows: int) -> None:
    """Beside the split: nothing. Along it: the split moves to the rows, by an all_to_all, where they divide."""
    x = draw(RNG, (rows, 120), np.float32)

    def two(x: Any) -> Any:
        return lax.sort((x, -x), dimension=1, num_keys=1)

    beside = check_split(two, [x], [P("x")], mesh, [P("x"), P("x")], interpreter=True)
    assert beside.kinds == []
    along = check_split(lambda x: jnp.sort(x, axis=1), [x], [P(None, "x")], mesh, [P(None, "x")], interpreter=True)
    if rows == 48 and mesh[0] > 2:  # over two devices a gather receives no more than two all_to_alls
        assert set(along.kinds) == {"all_to_all"}


def test_sort_of_an_uneven_dimension() -> None:
    check_split(jnp.sort, [draw(RNG, (50,), np.float32)], [P("x")], (8,), [P("x")], interpreter=True)
