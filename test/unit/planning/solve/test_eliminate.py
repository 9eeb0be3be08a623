"""Elimination finds a least sum where it may make all tables, and leaves the same problem where it may not."""

from __future__ import annotations

import pytest
from support import daily
from support.networks import every_price, grid, random_tables

from shardpass.planning.solve.eliminate import Elimination, elimination_order
from shardpass.planning.solve.network import Network


@pytest.mark.parametrize("seed", daily.drawn(range(100), 33))
def test_all_variables_go_and_nothing_is_below(seed: int) -> None:
    tables, sizes = random_tables(seed, forbidden=0.1 * (seed % 3))
    network = Network.of(tables, sizes)
    order, complete = elimination_order(network, 1 << 20, len(sizes))
    assert complete
    assert sorted(order) == sorted(sizes)
    elimination = Elimination(network, order)
    least = pytest.approx(min(every_price(tables, sizes)))
    assert elimination.left.base == least
    assert network.price(elimination.values({})) == least


@pytest.mark.parametrize("seed", daily.drawn(range(100), 33))
def test_variables_of_few_neighbours_leave_the_same_problem(seed: int) -> None:
    tables, sizes = random_tables(seed)
    network = Network.of(tables, sizes)
    order, _ = elimination_order(network, 1 << 20, 2)
    elimination = Elimination(network, order)
    assert not set(order) & set(elimination.left.sizes)
    values = {v: size - 1 for v, size in elimination.left.sizes.items()}
    assert network.price(elimination.values(values)) == pytest.approx(elimination.left.price(values))


def test_no_table_grows_above_the_limit() -> None:
    network = grid(0, 5, 4)
    order, complete = elimination_order(network, 64, 25)
    assert order
    assert not complete
    assert max(table.costs.size for table in Elimination(network, order).left.tables) <= 64
    assert elimination_order(network, 1 << 20, 25)[1]
