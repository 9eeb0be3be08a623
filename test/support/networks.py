"""Small random cost function networks, and their best price by enumeration."""

from __future__ import annotations

import itertools
from random import Random

import numpy as np

from shardpass.planning.solve.network import Network, Table


def random_tables(seed: int, forbidden: float = 0.0, wide: bool = False) -> tuple[list[Table], dict[int, int]]:
    """Some tables over up to six variables, and the sizes of all variables.

    ``forbidden``: the part of entries that are infinite; ``wide``: entries from 1e-12 to 1e3, as seconds may be.
    """
    draw, numbers = Random(seed), np.random.default_rng(seed)
    sizes = [draw.randint(1, 4) for _ in range(draw.randint(1, 6))]
    tables = []
    for _ in range(draw.randint(0, 10)):
        variables = tuple(draw.sample(range(len(sizes)), draw.randint(1, min(4, len(sizes)))))
        shape = [sizes[v] for v in variables]
        costs = 10 ** numbers.uniform(-12, 3, shape) if wide else numbers.random(shape)
        costs[numbers.random(shape) < forbidden] = np.inf
        tables.append(Table(variables, costs))
    return tables, dict(enumerate(sizes))


def every_price(tables: list[Table], sizes: dict[int, int]) -> list[float]:
    """The price of each assignment, added up here: nothing of ``Network`` is used."""
    rows = itertools.product(*map(range, sizes.values()))
    return [sum(float(table.costs[tuple(row[v] for v in table.variables)]) for table in tables) for row in rows]


def grid(seed: int, side: int, values: int) -> Network:
    """Variables on a grid, each with a table of its own and one with each neighbour: elimination needs wide tables."""
    numbers = np.random.default_rng(seed)
    tables = [Table((v,), numbers.random(values)) for v in range(side * side)]
    for v in range(side * side):
        near = ([v + 1] if (v + 1) % side else []) + ([v + side] if v + side < side * side else [])
        tables += [Table((v, w), numbers.random((values, values))) for w in near]
    return Network.of(tables)
