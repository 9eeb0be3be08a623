"""A low sum is found soon: never above the present one, the least where nothing is held, and lower by many rounds."""

from __future__ import annotations

import numpy as np
import pytest

from shardpass.planning import least_sum as rounds
from shardpass.planning.eliminate import Table, least
from shardpass.planning.least_sum import least_sum, sum_at


def grid(seed: int, side: int, values: int) -> list[Table]:
    """Variables on a grid, each with a table of its own and one with each neighbour: elimination needs wide tables."""
    numbers = np.random.default_rng(seed)
    tables = [Table((v,), numbers.integers(0, 100, values).astype(float)) for v in range(side * side)]
    for v in range(side * side):
        near = ([v + 1] if (v + 1) % side else []) + ([v + side] if v + side < side * side else [])
        tables += [Table((v, w), numbers.integers(0, 100, (values, values)).astype(float)) for w in near]
    return tables


@pytest.mark.parametrize("seed", range(20))
def test_what_elimination_can_do_is_least(seed: int) -> None:
    tables = grid(seed, 4, 3)
    present = dict.fromkeys(range(16), 0)
    found = least_sum(tables, present)
    assert not found.held
    assert sum_at(tables, found.values) == sum_at(tables, least(tables, {}).values)


@pytest.mark.parametrize("seed", range(20))
def test_rounds_end_near_the_least_sum(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """With room for 64 entries variables must be held; the least sum is known from tables with room for all."""
    tables = grid(seed, 5, 4)
    present = dict.fromkeys(range(25), 0)
    lowest = sum_at(tables, least(tables, {}).values)
    monkeypatch.setattr(rounds, "LEVELS", ((8, 64), (64, 256)))
    found = least_sum(tables, present)
    assert found.held
    assert found.values.keys() == present.keys()
    assert lowest <= sum_at(tables, found.values) < sum_at(tables, present)
    assert sum_at(tables, found.values) <= 1.1 * lowest


def test_no_tables_have_no_values() -> None:
    assert not least_sum([], {}).values
