"""The factors of a reshape, against brute force: both sides must hold the same elements on every device."""

from __future__ import annotations

from itertools import product
from math import prod

import numpy as np
import pytest

from shardpass.ops.families.broadcast_transpose import reshape_factors
from shardpass.ops.splits.assign import Side, settle
from shardpass.ops.splits.factors import DimAxes, Rule, RuleBuilder, project, unproject

TOTALS = (4, 6, 8, 9, 12, 16, 18, 24, 36)


def shapes_of(total: int, most: int = 3) -> list[tuple[int, ...]]:
    """Every shape of ``total`` elements with at most ``most`` dimensions, none of them 1."""
    if total == 1:
        return [()]
    found: list[tuple[int, ...]] = []
    for first in range(2, total + 1):
        if total % first == 0 and (most > 1 or first == total):
            found += [(first, *rest) for rest in shapes_of(total // first, most - 1)]
    return found


PAIRS = [(a, b) for total in TOTALS for a, b in product(shapes_of(total), repeat=2)]


def rule_for(source: tuple[int, ...], target: tuple[int, ...]) -> Rule:
    build = RuleBuilder([len(source)], [len(target)])
    for i, j, size in reshape_factors(source, target):
        factor = build.factor(size)
        build.operand(0, i, factor)
        build.result(0, j, factor)
    return build.build()


def elements(shape: tuple[int, ...], dims: DimAxes, sizes: tuple[int, ...]) -> list[list[int]]:
    """The row-major numbers of the elements on each device, by NumPy; dimensions divide evenly."""
    whole = np.arange(prod(shape)).reshape(shape)
    found = []
    for place in np.ndindex(*sizes):
        part = whole
        for dim, axes in enumerate(dims):
            index = 0
            for axis in axes:
                index = index * sizes[axis] + place[axis]
            count = prod(sizes[a] for a in axes)
            part = np.split(part, count, dim)[index]
        found.append(part.ravel().tolist())
    return found


def divides(shape: tuple[int, ...], dims: DimAxes, sizes: tuple[int, ...]) -> bool:
    return all(n % prod(sizes[a] for a in axes) == 0 for n, axes in zip(shape, dims, strict=True))


@pytest.mark.parametrize("prime", [2, 3])
def test_a_dimension_passes_its_split_on_exactly_where_the_elements_agree(prime: int) -> None:
    """One axis of prime size, every pair of dimensions: claimed if and only if right."""
    sizes = (prime,)
    checked = 0
    for source, target in PAIRS:
        rule = rule_for(source, target)
        for i, j in product(range(len(source)), range(len(target))):
            if source[i] % prime or target[j] % prime:
                continue
            one: DimAxes = tuple((0,) if d == i else () for d in range(len(source)))
            other: DimAxes = tuple((0,) if d == j else () for d in range(len(target)))
            right = elements(source, one, sizes) == elements(target, other, sizes)
            factors = project(rule, rule.operands[0], source, one, sizes)
            claimed = unproject(rule, rule.results[0], target, factors, sizes) == other
            assert claimed == right, (source, target, i, j)
            checked += 1
    assert checked > 500


def test_what_is_claimed_of_several_axes_is_right() -> None:
    """Axes 2, 3, 2 shared out over the source's dimensions: what both sides say holds the same elements."""
    sizes = (2, 3, 2)
    checked = 0
    for source, target in PAIRS:
        rule = rule_for(source, target)
        sides = [Side(source, rule.operands[0], None, 4), Side(target, rule.results[0], None, 4)]
        for places in product(range(-1, len(source)), repeat=len(sizes)):
            dims: DimAxes = tuple(tuple(a for a, p in enumerate(places) if p == d) for d in range(len(source)))
            settled = settle(rule, sides, project(rule, rule.operands[0], source, dims, sizes), sizes)
            if not settled:
                continue
            one = unproject(rule, rule.operands[0], source, settled, sizes)
            other = unproject(rule, rule.results[0], target, settled, sizes)
            if not (divides(source, one, sizes) and divides(target, other, sizes)):
                continue  # uneven: a dimension that passes whole, tile for tile
            assert elements(source, one, sizes) == elements(target, other, sizes), (source, target, dims)
            checked += 1
    assert checked > 1000


def test_sizes_of_one_have_no_factor() -> None:
    assert reshape_factors((1, 6), (6, 1)) == [(1, 0, 6)]
    assert reshape_factors((4, 1, 6), (1, 24)) == [(0, 1, 4), (2, 1, 6)]
    assert reshape_factors((1,), ()) == []


@pytest.mark.parametrize(
    ("source", "target", "factors"),
    [
        ((24,), (4, 6), [(0, 0, 4), (0, 1, 6)]),
        ((4, 6), (24,), [(0, 0, 4), (1, 0, 6)]),
        ((4, 6), (8, 3), [(0, 0, 4), (1, 0, 2), (1, 1, 3)]),
        ((4, 6), (6, 4), [(0, 0, 2)]),  # halves agree; 2 x 6 and 3 x 4 have no cut in common
        ((4, 6, 5), (6, 4, 5), [(0, 0, 2), (2, 2, 5)]),  # and go on together where both have passed 24
    ],
)
def test_factors_by_hand(source: tuple[int, ...], target: tuple[int, ...], factors: list[tuple[int, int, int]]) -> None:
    assert reshape_factors(source, target) == factors
