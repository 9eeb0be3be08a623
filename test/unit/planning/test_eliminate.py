"""Elimination finds a least sum: every assignment of small random tables is tried beside it."""

from __future__ import annotations

import itertools
from collections.abc import Mapping
from random import Random

import numpy as np
import pytest

from shardpass.planning.eliminate import LIMIT, Table, least


def random_tables(seed: int) -> tuple[list[Table], dict[int, int]]:
    """Some tables over up to six variables, and the sizes of the variables that stand in them."""
    draw, numbers = Random(seed), np.random.default_rng(seed)
    sizes = [draw.randint(1, 4) for _ in range(draw.randint(2, 6))]
    tables = []
    for _ in range(draw.randint(1, 8)):
        variables = tuple(draw.sample(range(len(sizes)), draw.randint(1, min(3, len(sizes)))))
        tables.append(Table(variables, numbers.integers(0, 20, [sizes[v] for v in variables]).astype(float)))
    return tables, {v: sizes[v] for table in tables for v in table.variables}


def total(tables: list[Table], values: Mapping[int, int]) -> float:
    return sum(float(table.costs[tuple(values[v] for v in table.variables)]) for table in tables)


def brute_force(tables: list[Table], sizes: Mapping[int, int], held: Mapping[int, int]) -> float:
    """The least sum of all assignments in which ``held`` have their values."""
    choices = [[held[v]] if v in held else range(size) for v, size in sizes.items()]
    return min(total(tables, dict(zip(sizes, row, strict=True))) for row in itertools.product(*choices))


@pytest.mark.parametrize("seed", range(100))
def test_nothing_is_below_what_is_found(seed: int) -> None:
    tables, sizes = random_tables(seed)
    found = least(tables, {})
    assert found.values.keys() == sizes.keys()
    assert total(tables, found.values) == brute_force(tables, sizes, {})
    assert not found.held


@pytest.mark.parametrize("limit", [1, 4, 16])
@pytest.mark.parametrize("seed", range(100))
def test_with_small_tables_some_are_held_and_the_others_are_best(seed: int, limit: int) -> None:
    tables, sizes = random_tables(seed)
    draw = Random(-seed)
    present = {v: draw.randrange(size) for v, size in sizes.items()}
    found = least(tables, present, limit)
    held = {v: present[v] for v in found.held}
    assert all(found.values[v] == value for v, value in held.items())
    assert total(tables, found.values) == brute_force(tables, sizes, held)
    assert total(tables, found.values) <= total(tables, present)


def test_some_program_is_held() -> None:
    """The case above is not empty: a triangle of variables with four values each needs tables of 64 entries."""
    tables = [Table(pair, np.eye(4)) for pair in ((0, 1), (1, 2), (0, 2))]
    assert least(tables, dict.fromkeys(range(3), 0), 16).held
    assert not least(tables, dict.fromkeys(range(3), 0), LIMIT).held
