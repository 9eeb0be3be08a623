"""Trials of sets of annotations: what is enough, and within which limit."""

from __future__ import annotations

from shardpass.advise.suggest.take import imported
from shardpass.advise.suggest.trials import Trials
from shardpass.cost.chosen import chosen
from shardpass.planning.decide.problem import Problem
from shardpass.planning.plan.task import Task
from shardpass.sharding import Mesh

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


def test_a_trial_above_the_limit_is_not_enough() -> None:
    problem = problem_of(("d", 8))
    x, w, v = (problem.propagated.index[value] for value in problem.task.folded.program.body.arguments)
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
