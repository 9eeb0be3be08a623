"""Tables that are reduced once: their solutions are those of all tables, whatever is fixed."""

from __future__ import annotations

import itertools

import pytest

from shardpass.cost.chosen import chosen
from shardpass.planning.problem import Problem
from shardpass.planning.task import Task
from shardpass.sharding import Mesh
from shardpass.suggesting.reduced import Reduced
from shardpass.suggesting.take import imported
from shardpass.suggesting.trials import Trials

UPDATE = """
func.func @main(%x: tensor<1024x64xf32>, %w: tensor<64x256xf32>, %v: tensor<256x64xf32>) -> tensor<64x256xf32> {
  %0 = stablehlo.dot_general %x, %w, contracting_dims = [1] x [0]
      : (tensor<1024x64xf32>, tensor<64x256xf32>) -> tensor<1024x256xf32>
  %1 = stablehlo.tanh %0 : tensor<1024x256xf32>
  %2 = stablehlo.dot_general %1, %v, contracting_dims = [1] x [0]
      : (tensor<1024x256xf32>, tensor<256x64xf32>) -> tensor<1024x64xf32>
  %3 = stablehlo.dot_general %2, %1, contracting_dims = [0] x [0]
      : (tensor<1024x64xf32>, tensor<1024x256xf32>) -> tensor<64x256xf32>
  %4 = stablehlo.add %w, %3 : tensor<64x256xf32>
  return %4 : tensor<64x256xf32>
}
"""


D = (0, 1, 2)  # the axis d of 8 devices, in factors of two


def problem_of(*axes: tuple[str, int]) -> Problem:
    program = imported(UPDATE, "-", Mesh(list(axes))).program
    return Problem(Task.of(program, {}, 1, chosen("h100")))


def reduced_of(problem: Problem) -> tuple[Reduced, list[int]]:
    arguments = [problem.propagated.index[value] for value in problem.task.folded.program.body.arguments]
    (result,) = [each for each in problem.propagated.results if each is not None]
    states = problem.ties([[arguments[1], result]])
    return Reduced(problem, states, problem.solve(ties=states), [*arguments, result]), arguments


def test_every_fixed_pair_costs_what_it_costs_in_all_tables() -> None:
    problem = problem_of(("d", 4), ("m", 2))
    reduced, (x, w, _) = reduced_of(problem)
    domains = [problem.solver.place(each).domain for each in (x, w)]
    assert min(map(len, domains)) > 4
    for splits in itertools.product(*domains):
        fixed = dict(zip((x, w), splits, strict=True))
        whole, one = problem.solve(fixed, reduced.states), reduced.solve(fixed)
        assert one is not None
        assert whole.tied
        assert one.price == pytest.approx(whole.price, rel=2e-3)  # both end near their bound (solver.CLOSE)
        assert one.splits[x] == splits[0]
        assert one.splits[w] == splits[1]
        (result,) = problem.propagated.results
        assert result is not None
        assert one.splits[result] == splits[1]  # the state comes out as it went in
        assert one.peak == problem.alive(problem.sizes(one.splits)).max()


def test_values_that_were_eliminated_cannot_be_fixed() -> None:
    problem = problem_of(("d", 8))
    reduced, arguments = reduced_of(problem)
    (hidden,) = [index for value, index in problem.propagated.index.items() if value == 3]
    assert hidden not in arguments
    assert reduced.solve({hidden: ((), ())}) is None


def test_a_trial_above_the_limit_is_not_enough() -> None:
    problem = problem_of(("d", 8))
    _, (x, w, v) = reduced_of(problem)
    start = problem.solve({x: (D, ()), w: ((), D), v: (D, ())})
    trials = Trials(problem, (), start)
    trials.enough *= 1e6  # no matter what it costs
    everything_whole = trials.placed([])
    # x of 256 KiB, both weights, what is returned, and the hidden values of 1 MiB
    assert everything_whole.peak > (256 + 3 * 64 + 1024) << 10 > start.peak
    assert trials.is_enough(everything_whole)
    trials.begin(0)
    trials.enough *= 1e6
    assert trials.limit == start.peak  # no lower, as nothing then would be enough
    assert not trials.is_enough(everything_whole)
    assert Trials(problem, (), start, most=int(start.peak)).placed([]).cost == float("inf")
