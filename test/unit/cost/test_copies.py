"""Which arrays XLA copies into another layout: by hand; ``test/unit/ir/test_memory.py`` asks XLA itself."""

from __future__ import annotations

import pytest

from shardpass.cost.copies import along, apart, of_product, out_of_order


@pytest.mark.parametrize(
    ("shapes", "batch", "contracted", "copied"),
    [
        (((8, 4), (8, 6)), ((), ()), ((0,), (0,)), (False, False)),  # two matrices: either way
        (((2, 3, 8), (8, 6)), ((), ()), ((2,), (0,)), (False, False)),  # bsd,df
        (((48, 2, 8), (5, 7, 48)), ((), ()), ((0,), (2,)), (True, True)),  # dhk,bsd: both turned around
        (((2, 9, 4, 8), (2, 9, 4, 8)), ((0, 2), (0, 2)), ((3,), (3,)), (True, True)),  # bqhd,bkhd
        (((2, 4, 9, 8), (2, 4, 8, 9)), ((0, 1), (0, 1)), ((3,), (2,)), (False, False)),
        (((2, 1, 4, 8), (2, 9, 4, 8)), ((0, 2), (0, 2)), ((3,), (3,)), (False, True)),  # one query lies anyhow
    ],
)
def test_products(shapes, batch, contracted, copied) -> None:
    assert of_product(shapes, batch, contracted) == copied


def test_dimensions_of_one_element_lie_anywhere() -> None:
    assert out_of_order((4, 5), (1, 0))
    assert not out_of_order((4, 1), (1, 0))


def test_gathers_along_the_leading_dimension_copy_nothing() -> None:
    assert [along((4, 8, 2), dim) for dim in range(3)] == [False, True, True]
    assert not along((1, 8), 1)


def test_concatenates_of_rows_are_done_apart() -> None:
    assert apart((64, 16), 1, 4, 2)
    assert not apart((64, 16), 0, 4, 2)
    assert not apart((8, 16), 1, 4, 2)  # 512 bytes
    assert apart((9,), 0, 4, 9)
