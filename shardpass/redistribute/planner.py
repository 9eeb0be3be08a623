"""The entrance: ``plan_redistribution``.

``ways`` makes the plan, ``simulate.check`` follows it before it leaves. Plans are cached by problem.
"""

from __future__ import annotations

import math
from functools import lru_cache

from shardpass.diagnostics import table_redistribute as table
from shardpass.redistribute.build import Builder
from shardpass.redistribute.costs import PROFILES
from shardpass.redistribute.plan import Plan
from shardpass.redistribute.problem import Problem, make_problem
from shardpass.redistribute.simulate import Unproven, check
from shardpass.redistribute.ways import build_plan
from shardpass.sharding import Mesh, Sharding

PLANNERS = ("best", "rink")
CACHED_PLANS = 4096


def plan_redistribution(
    shape: tuple[int, ...],
    element_type: str,
    source: Sharding | str,
    target: Sharding | str,
    *,
    planner: str = "best",
    num_devices: int | None = None,
    profile: str = "default",
) -> Plan:
    """How to take an array of ``shape`` from one sharding to another over the same devices.

    Args:
        shape: of the whole array.
        element_type: StableHLO's or HLO's name.
        source, target: ``Sharding``, or its text.
        planner: "rink", the method of Rink et al.; or "best", which is never dearer.
        num_devices: needed where neither sharding says it; at least 1.
        profile: the machine by which "best" weighs steps against bytes (``shardpass.redistribute.costs``).

    Raises:
        ShardpassError: text that is no sharding, shardings of another rank or over other devices (SP0xx,
            SP4xx). SP409 where the plan failed its own check.
    """
    meshes = (
        None if isinstance(source, str) else source.mesh,
        None if isinstance(target, str) else target.mesh,
    )
    return _cached(tuple(shape), element_type, source, target, planner, num_devices, profile, meshes)


def estimate_bytes(
    shape: tuple[int, ...],
    element_type: str,
    source: Sharding | str,
    target: Sharding | str,
    *,
    num_devices: int | None = None,
) -> int:
    """Bytes that the device which receives most receives, by the default planner. Cached with the plans."""
    return plan_redistribution(shape, element_type, source, target, num_devices=num_devices).bytes_received


@lru_cache(maxsize=CACHED_PLANS)
def _cached(
    shape: tuple[int, ...],
    element_type: str,
    source: Sharding | str,
    target: Sharding | str,
    planner: str,
    num_devices: int | None,
    profile: str,
    meshes: tuple[Mesh | None, Mesh | None],  # shardings that are equal may name their axes differently
) -> Plan:
    if planner not in PLANNERS:
        raise table.PLANNER.error(name=planner, known=" and ".join(PLANNERS))
    if profile not in PROFILES:
        raise table.PROFILE.error(name=profile, known=", ".join(PROFILES))
    return solve(make_problem(shape, element_type, source, target, num_devices), planner, profile)


def solve(problem: Problem, planner: str, profile: str = "default") -> Plan:
    """A checked plan. Raises ShardpassError (SP409) where the plan does not do what it should."""
    plan = _finished(problem, build_plan(problem, planner, PROFILES[profile]), planner)
    if math.prod(problem.shape) != 0:
        try:
            check(plan.program, problem.source.state(), problem.final_state(), problem.shape)
        except Unproven as reason:
            raise table.UNPROVEN.error(problem=str(problem), reason=str(reason)) from None
    return plan


def _finished(problem: Problem, builder: Builder, planner: str) -> Plan:
    return Plan(
        problem.shape,
        problem.element,
        problem.source.sharding,
        problem.target.sharding,
        problem.devices,
        planner,
        tuple(builder.steps),
        tuple(builder.program),
        problem.source.tile,
        problem.target.tile,
        problem.lower_bound_bytes,
        builder.memory.peak,
        builder.received,
    )
