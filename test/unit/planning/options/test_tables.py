"""All values at once: tables beside planned reshards, and programs whose best assignment no single move reaches."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

import shardpass
from shardpass.cost.machine import IDEAL
from shardpass.diagnostics import collect
from shardpass.element_types import element_type
from shardpass.ops.splits.prime_mesh import prime_mesh
from shardpass.planning.decide.candidates import Search
from shardpass.planning.decide.search import decide
from shardpass.planning.decide.solver import Solver
from shardpass.planning.options.axes import whole_axes
from shardpass.planning.price.clock import clock_of
from shardpass.planning.price.distances import Distances
from shardpass.planning.price.prices import Prices
from shardpass.program.program import Array
from shardpass.program.table import table_of
from shardpass.sharding import Mesh
from tools.prove.cheapest.random_programs import random_program

MESH = prime_mesh(Mesh((("d", 2), ("m", 4))))
D, M = whole_axes(MESH)
SPLITS = tuple(
    (first, second)
    for first, second in itertools.product(((), D, M, (*D, *M), (*M, *D)), repeat=2)
    if not set(first) & set(second)
)


def test_the_formula_is_what_the_planner_receives_or_a_little_less() -> None:
    """Never above a planned reshard, and the same wherever tiles do not merely change their owners."""
    array = Array((64, 32), element_type("f32"), 64 * 32 * 4)
    formula = Distances(clock_of(IDEAL), (D, M)).of(array, MESH, SPLITS, SPLITS)
    prices = Prices(8)
    planned = formula.copy()
    for (row, source), (column, target) in itertools.product(enumerate(SPLITS), repeat=2):
        moved = prices.move(array, MESH.sharding(source), MESH.sharding(target), MESH)
        planned[row, column] = (moved + 512) / 50e9 if moved else 0
    assert np.all(formula <= planned * (1 + 1e-6))
    # with prices, what is planned where the formula may be too low, and the formula elsewhere: the same as all planned
    assert Distances(clock_of(IDEAL), (D, M), Prices(8)).of(array, MESH, SPLITS, SPLITS) == pytest.approx(planned)
    # of no pairs where more would have to be planned than is allowed
    few = Distances(clock_of(IDEAL), (D, M), Prices(8), 33).of(array, MESH, SPLITS, SPLITS)
    assert np.array_equal(few, formula)
    assert 0 < np.mean(~np.isclose(formula, planned, rtol=1e-6, atol=0)) < 0.05
    assert np.all((formula == 0) == (planned == 0))


@pytest.mark.turns(2)
@pytest.mark.parametrize("seed", [16, 21, 35, 54, 56, 68])
def test_the_optimum_is_found_where_single_moves_stop(seed: int) -> None:
    """Small random programs on which a descent alone ends up to 1.7 times above the least that the bound allows."""
    with collect():
        module = shardpass.run_pipeline(random_program(seed).text, "shardpass-import")
        with module.context:
            found = decide(table_of(module, "propagate").program, {}, 2)
    assert found.bound is not None
    assert found.bound.least is not None
    assert found.bound.plan < found.bound.least * 1.001, found.bound


def test_the_least_sum_is_that_of_all_assignments() -> None:
    """``tanh(x)``, x in rows over eight devices, nothing said of the result: every assignment is looked at."""
    rows, kind = '{mhlo.sharding = "{devices=[8,1]<=[8]}"}', "tensor<16x24xf32>"
    body = f"%y = stablehlo.tanh %x : {kind} return %y : {kind}"
    main = f"func.func @main(%x: {kind} {rows}) -> {kind} {{ {body} }}"
    text = f"module attributes {{mhlo.num_partitions = 8 : i32}} {{ {main} }}"
    with collect():
        module = shardpass.run_pipeline(text, "shardpass-import")
        with module.context:
            search = Search(table_of(module, "propagate").program, {}, IDEAL)
    solver = Solver(search.propagated, search.counts, whole_axes(search.propagated.program.mesh))
    tables = solver.network.tables
    sizes = {v: n for table in tables for v, n in zip(table.variables, table.costs.shape, strict=True)}
    every = [dict(zip(sizes, values, strict=True)) for values in itertools.product(*map(range, sizes.values()))]
    sums = [sum(table.costs[tuple(one[v] for v in table.variables)] for table in tables) for one in every]
    assert len(sums) > 20
    assert solver.solve().result.price == pytest.approx(min(sums))
    assert min(sums) == pytest.approx(2 * 4 * 16 * 24 // 8 / 1e12)  # an eighth of the elements is read and written
