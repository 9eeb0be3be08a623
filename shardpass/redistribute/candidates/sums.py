"""Keep partial sums in the target: treat the summands of an element as separate arrays that move alike.

Problem: values that are partial sums over some axes in the source and still in the target, where sub-axes cannot
express the problem.

1. The target keeps all sums: they are stacked along a new first dimension, which the axes of the sums split on both
   sides. The stack is one array of whole values, and is planned as such. f32[8] in two sums over x, to move from y to
   z, is f32[2, 8] from [{x}, {y}] to [{x}, {z}].
2. The target keeps some: the others are added first, and the rest is case 1 (``half_added``).
"""

from __future__ import annotations

from dataclasses import replace

from shardpass.redistribute.candidates.sub_axes.assignments import SubAxisProblem
from shardpass.redistribute.plan import Plan
from shardpass.redistribute.problem.checks import make_problem
from shardpass.redistribute.problem.problem import Distribution, Problem
from shardpass.redistribute.program import ops
from shardpass.redistribute.program.steps import Step
from shardpass.sharding import Sharding


def stacked(problem: Problem) -> Problem | None:
    """Return the problem with partial sums as a dimension; None if sums are added or if sub-axes suffice."""
    if not problem.is_kept or problem.is_nothing or _is_in_sub_axes(problem):
        return None
    sides = (_stacked(problem.source), _stacked(problem.target))
    return make_problem((problem.sums, *problem.shape), problem.element.mlir, *sides, problem.devices)


def half_added(problem: Problem) -> Sharding | None:
    """Return the source after the sums that the target does not keep are added.

    None unless the target keeps some of the sums, and sub-axes do not express the problem.
    """
    source, target = problem.source.sharding, problem.target.sharding
    if problem.target.summand is None or problem.is_kept or source.mesh is None or _is_in_sub_axes(problem):
        return None
    stay = [axis for axis in source.unreduced if axis in target.unreduced]
    return Sharding.tiled(source.mesh, source.dims, unreduced=stay, reduction=source.reduction)


def concatenated(problem: Problem, first: Plan, second: Plan) -> Plan:
    """Concatenate plans of ``problem``: ``second`` starts where ``first`` ends."""
    return replace(
        second,
        source=first.source,
        source_tile=first.source_tile,
        steps=(*first.steps, *second.steps),
        program=(*first.program, *second.program),
        lower_bound_bytes=problem.lower_bound_bytes,
        peak_live_bytes=max(first.peak_live_bytes, second.peak_live_bytes),
        received=first.received + second.received,
        seconds=first.seconds + second.seconds,
        local_seconds=first.local_seconds + second.local_seconds,
        refused=(*first.refused, *second.refused),
    )


def _is_in_sub_axes(problem: Problem) -> bool:
    shape = problem.aligned()
    return shape is not None and SubAxisProblem.of(problem, shape) is not None


def _stacked(side: Distribution) -> Sharding:
    mesh, sharding = side.sharding.mesh, side.sharding
    assert mesh is not None  # or there would be no axes to sum over
    return Sharding.tiled(mesh, (sharding.unreduced, *sharding.dims))


def unstacked(plan: Plan, problem: Problem) -> Plan:
    """Restate ``plan``, of ``stacked(problem)``, for the local arrays of the problem itself."""
    program = (ops.Reshape(plan.source_tile), *plan.program, ops.Reshape(problem.target.tile))
    return replace(
        plan,
        shape=problem.shape,
        source=problem.source.sharding,
        target=problem.target.sharding,
        source_tile=problem.source.tile,
        target_tile=problem.target.tile,
        steps=tuple(map(_unstacked, plan.steps)),
        program=program if plan.program else (),
    )


def _unstacked(step: Step) -> Step:
    """Remove the dimension of sums from the tiles of a step, except from tiles of several sums."""
    before, after = (tile[1:] if tile[0] == 1 else tile for tile in (step.tile_before, step.tile_after))
    return replace(step, tile_before=before, tile_after=after)
