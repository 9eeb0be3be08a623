"""A network has the prices of its tables, in fewer of them, and falls apart where variables do not depend."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from support import daily
from support.networks import every_price, random_tables

from shardpass.planning.solve.network import Network, Table


@pytest.mark.parametrize("seed", daily.drawn(range(100), 33))
def test_every_price_is_the_sum_of_the_tables(seed: int) -> None:
    tables, sizes = random_tables(seed, forbidden=0.2 * (seed % 2))
    network = Network.of(tables, sizes)
    rows = [dict(zip(sizes, row, strict=True)) for row in itertools.product(*map(range, sizes.values()))]
    assert [network.price(row) for row in rows] == pytest.approx(every_price(tables, sizes))
    assert len({table.variables for table in network.tables}) == len(network.tables)
    assert all(table.costs.min() == 0 or np.isinf(table.costs).all() for table in network.tables)


@pytest.mark.parametrize("seed", daily.drawn(range(100), 33))
def test_components_share_no_variable_and_add_up(seed: int) -> None:
    tables, sizes = random_tables(seed)
    network = Network.of(tables, sizes)
    parts = network.components()
    assert sorted(v for part in parts for v in part.sizes) == sorted(sizes)
    values = {v: size - 1 for v, size in sizes.items()}
    assert network.base + sum(part.price(values) for part in parts) == pytest.approx(network.price(values))


def test_two_pairs_are_two_components() -> None:
    pair = np.arange(4.0).reshape(2, 2)
    network = Network.of([Table((0, 2), pair), Table((3, 1), pair)])
    assert [tuple(part.sizes) for part in network.components()] == [(0, 2), (1, 3)]


@pytest.mark.parametrize("seed", range(20))
def test_what_is_given_is_in_all_prices(seed: int) -> None:
    tables, sizes = random_tables(seed)
    network = Network.of(tables, sizes)
    given = {v: size - 1 for v, size in list(sizes.items())[::2]}
    rest = network.given(given)
    assert not rest.sizes.keys() & given.keys()
    for row in itertools.product(*[range(size) for size in rest.sizes.values()]):
        values = dict(zip(rest.sizes, row, strict=True))
        assert rest.price(values) == pytest.approx(network.price({**values, **given}))
