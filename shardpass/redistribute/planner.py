"""The public entry point of the planner: ``plan_redistribution``.

``candidates.search`` builds the plan, ``program.simulate.check`` proves it before it is handed out. Plans are cached by
their arguments.
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import replace
from functools import lru_cache
from typing import TYPE_CHECKING, overload

from shardpass.cost.chosen import chosen
from shardpass.cost.machine import Machine
from shardpass.diagnostics import table_redistribute as table
from shardpass.diagnostics.arguments import shown
from shardpass.redistribute.between.plan import TransferPlan
from shardpass.redistribute.between.planner import plan_between
from shardpass.redistribute.between.sides import devices_of, other_devices
from shardpass.redistribute.candidates.search import between, build_plan
from shardpass.redistribute.candidates.sums import concatenated, half_added, stacked, unstacked
from shardpass.redistribute.plan import Plan
from shardpass.redistribute.problem.arguments import count_of, element_name_of, shape_of, sharding_of
from shardpass.redistribute.problem.checks import make_problem
from shardpass.redistribute.problem.problem import Problem
from shardpass.redistribute.program import ops
from shardpass.redistribute.program.build import Builder
from shardpass.redistribute.program.digits import Unproven
from shardpass.redistribute.program.ends import final_state, held_under
from shardpass.redistribute.program.ops import DeviceProgram
from shardpass.redistribute.program.simulate import check
from shardpass.redistribute.terms.choice import Terms, label_of
from shardpass.redistribute.terms.costs import cost, local_prices, local_seconds
from shardpass.redistribute.terms.limit import Limit, read_limit
from shardpass.sharding import Mesh, Sharding, TupleSharding

if TYPE_CHECKING:
    from typing import TypeAlias

    from jax import Device
    from jax.sharding import NamedSharding
    from numpy.typing import DTypeLike

    ElementTypeLike: TypeAlias = str | DTypeLike
    ShardingLike: TypeAlias = str | Sharding | TupleSharding | NamedSharding
    Devices: TypeAlias = Sequence[int | Device] | None

PLANNERS = ("best", "rink")
CACHED_PLANS = 4096


@overload
def plan_redistribution(
    shape: Sequence[int],
    element_type: ElementTypeLike,
    source: ShardingLike,
    target: ShardingLike,
    *,
    planner: str = "best",
    num_devices: int | None = None,
    machine: str | Machine | None = None,
    memory_limit: int | str | None = "max",
) -> Plan: ...
@overload
def plan_redistribution(
    shape: Sequence[int],
    element_type: ElementTypeLike,
    source: ShardingLike,
    target: ShardingLike,
    *,
    source_devices: Devices,
    target_devices: Devices,
    machine: str | Machine | None = None,
    memory_limit: int | str | None = "max",
) -> TransferPlan: ...
def plan_redistribution(
    shape: Sequence[int],
    element_type: ElementTypeLike,
    source: ShardingLike,
    target: ShardingLike,
    *,
    source_devices: Devices = None,
    target_devices: Devices = None,
    planner: str = "best",
    num_devices: int | None = None,
    machine: str | Machine | None = None,
    memory_limit: int | str | None = "max",
) -> Plan | TransferPlan:
    """Plan the conversion of an array of ``shape`` from one sharding to another.

    If the two shardings are over different sets of devices (lists of devices, or JAX shardings over meshes of different
    devices), the result is a ``TransferPlan`` (docs/device_sets.md).

    Args:
        shape: the shape of the whole array.
        element_type: StableHLO's or HLO's name of the element type, or a dtype (``jnp.bfloat16``).
        source, target: a ``Sharding``, its text, or a ``jax.sharding.NamedSharding``.
        planner: "rink", the method of Rink et al.; or "best", which is never slower.
        source_devices, target_devices: the devices of each sharding, in its order: ids, or objects with an ``id``. If
            only one is given, the other side is on devices 0, 1, ...
        num_devices: the number of devices, required if neither sharding determines it.
        machine: the machine by which "best" weighs steps against bytes: a name in docs/reference/machines.md, the path
            of a file, or a ``Machine``. The default is the environment variable SHARDPASS_MACHINE, else h100.
        memory_limit: "max", a number of bytes, or None (``shardpass.redistribute.terms.limit``).

    Raises:
        ShardpassError: SP0xx and SP4xx for invalid text, or shardings of different ranks or devices; SP413 if every
            known plan needs more than ``memory_limit``; SP409 if the plan fails its own check; SP417 to SP419 for lists
            of devices that do not fit a sharding; SP901 to SP903 for an unknown machine.
    """
    sizes = shape_of(shape)
    lists = devices_of(source_devices, "source_devices"), devices_of(target_devices, "target_devices")
    if lists == (None, None):
        lists = other_devices(source, target)
    sides = sharding_of(source, "source", len(sizes)), sharding_of(target, "target", len(sizes))
    meshes = tuple(given.mesh if isinstance(given, Sharding) else None for given in sides)
    terms = Terms(chosen(machine), read_limit(memory_limit))
    if type(planner) is not str or planner not in PLANNERS:
        raise table.PLANNER.error(name=shown(planner), known=" and ".join(PLANNERS))
    if lists != (None, None):
        return plan_between(sizes, element_name_of(element_type), *sides, *lists, terms.machine, terms.limit)
    return _cached(sizes, element_name_of(element_type), *sides, planner, count_of(num_devices), terms, meshes)


def estimate_bytes(
    shape: tuple[int, ...],
    element_type: str,
    source: Sharding | str,
    target: Sharding | str,
    *,
    num_devices: int | None = None,
) -> int:
    """Return the bytes received by the busiest device under the default planner. Cached with the plans."""
    return plan_redistribution(shape, element_type, source, target, num_devices=num_devices).bytes_received


@lru_cache(maxsize=CACHED_PLANS)
def _cached(
    shape: tuple[int, ...],
    element_type: str,
    source: Sharding | TupleSharding | str,
    target: Sharding | TupleSharding | str,
    planner: str,
    num_devices: int | None,
    terms: Terms,
    meshes: tuple[Mesh | None, ...],  # shardings that are equal may name their axes differently
) -> Plan:
    return solve(make_problem(shape, element_type, source, target, num_devices), planner, terms)


def solve(problem: Problem, planner: str, terms: Terms) -> Plan:
    """Return a proved plan. Raises SP413 (over the memory limit), SP409 (the plan failed its proof)."""
    before, after = (problem.element.bytes(math.prod(side.tile)) for side in (problem.source, problem.target))
    terms = replace(terms, tiles=(before, after))
    if (stack := stacked(problem)) is not None:
        return unstacked(solve(stack, planner, terms), problem)
    if (middle := half_added(problem)) is not None:
        halves = (between(problem, target=middle), between(problem, source=middle))
        return concatenated(problem, *(solve(half, planner, terms) for half in halves))
    built = build_plan(problem, planner, terms)
    _refuse_over_limit(terms.limit, built, problem)
    return finished(problem, built, planner, terms)


def _refuse_over_limit(limit: Limit, built: Builder, problem: Problem) -> None:
    if isinstance(limit, int) and built.memory.peak > limit:
        source, target = (built.bytes(side.tile) for side in (problem.source, problem.target))
        raise table.OVER_LIMIT.error(
            problem=str(problem),
            limit=limit,
            least=built.memory.peak,
            way=label_of(built),
            source=source,
            target=target,
        )


def finished(problem: Problem, built: Builder, planner: str, terms: Terms) -> Plan:
    """Prove the finished builder ``built`` and return its plan. Raises SP409 where the proof fails."""
    plan = _plan(problem, built, planner, terms)
    if math.prod(problem.shape) != 0:
        try:
            check(plan.program, held_under(problem.source), final_state(problem), problem.shape)
        except Unproven as reason:
            raise table.UNPROVEN.error(problem=str(problem), reason=str(reason)) from None
    return plan


NARROW = re.compile("bf16|f8")  # floats that XLA's CPU client computes with, and sends, as wider ones


def _as_bits(builder: Builder, terms: Terms) -> DeviceProgram:
    """Return the program with values as bits, if the machine sends such floats as wider floats."""
    wider = local_prices(terms.machine).floats_as_bits and NARROW.match(builder.element.mlir)
    moves = any(step.is_collective for step in builder.steps)
    return (ops.AsBits(), *builder.program) if wider and moves else tuple(builder.program)


def _plan(problem: Problem, builder: Builder, planner: str, terms: Terms) -> Plan:
    return Plan(
        problem.shape,
        problem.element,
        problem.source.sharding,
        problem.target.sharding,
        problem.devices,
        planner,
        tuple(builder.steps),
        _as_bits(builder, terms),
        problem.source.tile,
        problem.target.tile,
        problem.lower_bound_bytes,
        builder.memory.peak,
        builder.received,
        terms.machine.name,
        terms.limit,
        cost(terms.machine, builder),
        local_seconds(terms.machine, builder),
        tuple(builder.refused),
    )
