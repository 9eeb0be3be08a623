"""Splits within a limit: near the best that trying all splits of arguments finds, with a bound that is never above."""

from __future__ import annotations

import itertools
from typing import Any

import pytest

from shardpass.advise.suggest.take import imported
from shardpass.cost.chosen import chosen
from shardpass.planning.decide.problem import Problem
from shardpass.planning.decide.within import within
from shardpass.planning.plan.task import Task
from shardpass.sharding import Mesh

TWO = """
func.func @main(%x: tensor<1024x64xf32>, %w1: tensor<64x256xf32>, %w2: tensor<256x64xf32>) -> tensor<1024x64xf32> {
  %0 = stablehlo.dot_general %x, %w1, contracting_dims = [1] x [0]
      : (tensor<1024x64xf32>, tensor<64x256xf32>) -> tensor<1024x256xf32>
  %1 = stablehlo.tanh %0 : tensor<1024x256xf32>
  %2 = stablehlo.dot_general %1, %w2, contracting_dims = [1] x [0]
      : (tensor<1024x256xf32>, tensor<256x64xf32>) -> tensor<1024x64xf32>
  return %2 : tensor<1024x64xf32>
}
"""
KIB = 1 << 10


def problem_of(text: str, *axes: tuple[str, int]) -> Problem:
    program = imported(text, "-", Mesh(list(axes))).program
    return Problem(Task.of(program, {}, 1, chosen("h100")))


@pytest.mark.parametrize("limit", [800 * KIB, 250 * KIB])
def test_the_limit_is_kept_and_the_bound_is_none_too_high(limit: int) -> None:
    """Each assignment of all arguments is solved with these fixed, in the very same tables."""
    problem = problem_of(TWO, ("d", 4), ("m", 2))
    index = [problem.propagated.index[value] for value in problem.task.folded.program.body.arguments]
    found = within(problem, (), limit, [[each] for each in index])
    assert found.peak <= limit
    tried = [
        problem.solve(dict(zip(index, splits, strict=True)))
        for splits in itertools.product(*[problem.solver.place(each).domain for each in index])
    ]
    fitting = [one.price for one in tried if one.peak <= limit]
    assert fitting
    assert found.least <= min(fitting) * (1 + 1e-9)
    assert found.price <= min(fitting) * 1.01
    assert found.price == pytest.approx(problem.solver.price(found.values))


def test_where_nothing_fits_the_answer_is_what_holds_least() -> None:
    problem = problem_of(TWO, ("d", 8))
    index = [problem.propagated.index[value] for value in problem.task.folded.program.body.arguments]
    found = within(problem, (), 0, [[each] for each in index])
    # rows of x, of the hidden and of the result over 8 devices, and weights either whole or split
    least = (1024 * 64 + 64 * 256 + 256 * 64 + 1024 * 256 + 1024 * 64) * 4 // 8
    assert found.peak >= least
    assert found.peak == pytest.approx(least, rel=0.01)


def test_ties_hold() -> None:
    problem = problem_of(TWO, ("d", 8))
    values: Any = problem.task.folded.program.body.arguments
    first, last = problem.propagated.index[values[0]], problem.propagated.results[0]
    assert last is not None
    ties = problem.ties([[first, last]])
    for dims in problem.solver.place(first).domain:
        found = problem.solve({first: dims}, ties)
        assert found.splits[last] == found.splits[first] == dims
