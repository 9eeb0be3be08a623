"""What is left of a network has its best assignments, beside every assignment of small random networks."""

from __future__ import annotations

import math

import numpy as np
import pytest
from support.networks import every_price, grid, random_tables

from shardpass.planning.solve import reduce
from shardpass.planning.solve.network import Network, Table
from shardpass.planning.solve.reduce import reduced


@pytest.fixture(autouse=True)
def _small_networks_have_passes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reduce, "CALLS", 0)


@pytest.mark.parametrize("forbidden", [0.0, 0.3])
def test_a_best_assignment_is_left(forbidden: float) -> None:
    seen = cut = 0
    for seed in range(1000):
        tables = [table for table in random_tables(seed, forbidden)[0] if len(table.variables) <= 2]
        for part in Network.of(tables).components():
            sizes, known = dict(part.sizes), dict.fromkeys(part.sizes, 0)
            if len(sizes) < 2 or math.isinf(part.price(known)):
                continue
            numbered = {variable: place for place, variable in enumerate(sizes)}
            tables = [Table(tuple([numbered[v] for v in table.variables]), table.costs) for table in part.tables]
            sizes = dict(enumerate(sizes.values()))
            network, known = Network.of(tables, sizes), dict.fromkeys(sizes, 0)
            rest = reduced(network, known)
            least = min(every_price(tables, sizes))
            left = min(every_price([*rest.network.tables], dict(rest.network.sizes))) + rest.network.base
            assert left == pytest.approx(least, rel=1e-9), seed
            best = rest.before(rest.best)
            assert rest.network.price(rest.best) == pytest.approx(network.price(best), rel=1e-9)
            assert network.price(best) <= network.price(known) * (1 + 1e-9)
            seen += 1
            cut += rest.network.sizes != sizes
    assert seen > 100
    assert cut > seen / 3


def test_the_example_of_the_module() -> None:
    network = Network.of([Table((0,), np.array([0.0, 5.0])), Table((0, 1), np.array([[1.0, 2.0], [3.0, 1.0]]))])
    rest = reduced(network, {0: 0, 1: 1})
    assert rest.network.sizes == {0: 1, 1: 1}
    assert rest.before(rest.best) == {0: 0, 1: 0}
    assert rest.network.base == 1.0


def test_prices_are_those_of_the_whole_network() -> None:
    network = grid(4, 4, 12)
    rest = reduced(network, dict.fromkeys(network.sizes, 0))
    rng = np.random.default_rng(0)
    for _ in range(20):
        values = {variable: int(rng.integers(size)) for variable, size in rest.network.sizes.items()}
        assert rest.network.price(values) == pytest.approx(network.price(rest.before(values)), rel=1e-12)
