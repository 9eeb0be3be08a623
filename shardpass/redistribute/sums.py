"""Partial sums that a redistribution keeps: they are never mixed, so they are so many arrays that move alike.

Stacked along a new first dimension, which the axes of the sums split on both sides, they are one array of whole
values, and whatever is known of those holds for it.
"""

from __future__ import annotations

from dataclasses import replace

from shardpass.diagnostics import table_redistribute as table
from shardpass.redistribute import ops
from shardpass.redistribute.digits import DigitProblem
from shardpass.redistribute.plan import Plan, Step
from shardpass.redistribute.problem import Problem, Side, make_problem
from shardpass.sharding import Sharding


def stacked(problem: Problem) -> Problem | None:
    """The problem as one of whole values; None where sums are added, or where digits say it as it stands."""
    if not problem.is_kept or problem.is_nothing:
        return None
    shape = problem.aligned()
    if shape is not None and DigitProblem.of(problem, shape) is not None:
        return None
    sides = (_stacked(problem.source), _stacked(problem.target))
    return make_problem((problem.sums, *problem.shape), problem.element.mlir, *sides, problem.devices)


def _stacked(side: Side) -> Sharding:
    mesh, sharding = side.sharding.mesh, side.sharding
    assert mesh is not None  # or there would be no axes to sum over
    return Sharding.tiled(mesh, (sharding.unreduced, *sharding.dims))


def unstacked(plan: Plan, problem: Problem) -> Plan:
    """``plan``, which is of ``stacked(problem)``, for the local arrays of the problem itself."""
    tiles = [tile for step in plan.steps for tile in (step.tile_before, step.tile_after)]
    if any(tile[0] != 1 for tile in tiles):
        source, target = problem.source.sharding, problem.target.sharding
        raise table.UNREDUCED.error(source=str(source), target=str(target))
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
    return replace(step, tile_before=step.tile_before[1:], tile_after=step.tile_after[1:])
