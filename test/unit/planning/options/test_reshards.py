"""Prices of reshards in tables: what is planned for one pair of splits raises all tables in which the pair stands."""

from __future__ import annotations

from shardpass.cost.machine import IDEAL
from shardpass.element_types import element_type
from shardpass.ops.splits.factors import DimAxes
from shardpass.ops.splits.prime_mesh import prime_mesh
from shardpass.planning.options.axes import whole_axes
from shardpass.planning.options.reshards import Moves, Reshards
from shardpass.planning.price.clock import clock_of
from shardpass.planning.price.distances import Distances
from shardpass.program.program import Array
from shardpass.sharding import Mesh

MESH = prime_mesh(Mesh((("d", 4), ("m", 4))))
D, M = whole_axes(MESH)
ARRAY = Array((64, 64, 64), element_type("f32"), 64**3 * 4)
WHOLE = ((), (), ())
MIDDLE, LAST, FIRST = ((), D, ()), ((), (), D), (D, (), ())


def _reshards() -> Reshards:
    clock = clock_of(IDEAL)
    return Reshards(Distances(clock, (D, M)), clock)


def _moves(reshards: Reshards, *targets: DimAxes) -> Moves:
    return reshards.of(ARRAY, MESH, (FIRST, MIDDLE, LAST), targets)


def test_a_planned_pair_is_raised_in_all_tables_of_its_type() -> None:
    """A gather of the middle dimension copies what it receives into place, which the formula does not count."""
    reshards = _reshards()
    one, other = _moves(reshards, WHOLE), _moves(reshards, (M, (), ()), WHOLE, WHOLE)
    formula = other.costs[1].copy()
    one.plan(1, 0)
    assert one.costs[1, 0] > formula[1]
    assert other.costs[1].tolist() == [formula[0], one.costs[1, 0], one.costs[1, 0]]
    assert other.changes == 2  # the last dimension's, too


def test_pairs_that_cost_as_much_by_the_formula_are_planned_too() -> None:
    """Where the gather of one dimension is raised, that of another would be in the next solution."""
    moves = _moves(_reshards(), WHOLE)
    first = moves.costs[0, 0]
    moves.plan(1, 0)
    assert moves.costs[2, 0] > first
    assert moves.costs[0, 0] == first  # the first dimension lies in place
    changes = moves.changes
    moves.plan(2, 0)
    assert moves.changes == changes
