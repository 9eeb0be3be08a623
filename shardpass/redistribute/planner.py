"""The entrance: ``plan_redistribution``, and what it tries in which order.

1. Nothing to do, or an array without elements: no steps.
2. The borders of the tiles nest (every case where sizes divide, and more): a planner on groups of devices.
3. They cross, or the source is on one device: the exact exchange (``shardpass.redistribute.exchange``).

Each plan is followed by ``simulate.check`` before it leaves. Plans are cached by problem.
"""

from __future__ import annotations

import math
from dataclasses import replace
from functools import lru_cache, partial

import numpy as np

from shardpass.diagnostics import table_redistribute as table
from shardpass.redistribute import ops
from shardpass.redistribute.best import MOST_ROUNDS, Form, digit_forms
from shardpass.redistribute.build import Builder
from shardpass.redistribute.digits import DigitProblem
from shardpass.redistribute.exchange import plan_exchange
from shardpass.redistribute.plan import Plan
from shardpass.redistribute.problem import Problem, make_problem
from shardpass.redistribute.rink import plan_rink
from shardpass.redistribute.simulate import Unproven, check
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
) -> Plan:
    """How to take an array of ``shape`` from one sharding to another over the same devices.

    Args:
        shape: of the whole array.
        element_type: StableHLO's or HLO's name.
        source, target: ``Sharding``, or its text.
        planner: "rink", the method of Rink et al.; or "best", which is never dearer.
        num_devices: needed where neither sharding says it; at least 1.

    Raises:
        ShardpassError: text that is no sharding, shardings of another rank or over other devices (SP0xx,
            SP4xx). SP409 where the plan failed its own check.
    """
    meshes = (
        None if isinstance(source, str) else source.mesh,
        None if isinstance(target, str) else target.mesh,
    )
    return _cached(tuple(shape), element_type, source, target, planner, num_devices, meshes)


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
    meshes: tuple[Mesh | None, Mesh | None],  # shardings that are equal may name their axes differently
) -> Plan:
    if planner not in PLANNERS:
        raise table.PLANNER.error(name=planner, known=" and ".join(PLANNERS))
    return solve(make_problem(shape, element_type, source, target, num_devices), planner)


def solve(problem: Problem, planner: str) -> Plan:
    """A checked plan. Raises ShardpassError (SP409) where the plan does not do what it should."""
    plan = _finished(problem, _planned(problem, planner), planner)
    if math.prod(problem.shape) != 0:
        try:
            check(plan.program, problem.source.state(), problem.final_state(), problem.shape)
        except Unproven as reason:
            raise table.UNPROVEN.error(problem=str(problem), reason=str(reason)) from None
    return plan


def _planned(problem: Problem, planner: str) -> Builder:
    if problem.is_nothing:
        return _start(problem)
    if math.prod(problem.shape) == 0:
        builder = _start(problem)
        builder.local(ops.Zeros(problem.target.tile), problem.target.tile)
        return builder
    shape = problem.aligned()
    if problem.source.summand is not None:
        return _with_sums(problem, shape, planner)
    many = problem.devices > MOST_DEVICES_EXCHANGED
    if problem.source.only is not None and many:
        return _spread(problem, planner)
    if shape is None and many:
        return _gathered(problem, planner)
    if shape is None or problem.source.only is not None:
        return min((_exchanged(problem, by_shape) for by_shape in (False, True)), key=cost)
    return _best(problem, shape) if planner == "best" else _rink(problem, shape)


def _spread(problem: Problem, planner: str) -> Builder:
    """From one device to many: the holders double with every step; then from replicated on."""
    builder = _start(problem)
    held = problem.source.boxes(problem.shape)
    order = np.argsort(~held.real, kind="stable")
    count = 1
    while count < problem.devices:
        count *= 2
        real = np.zeros(problem.devices, bool)
        real[order[:count]] = True
        wanted = replace(held, real=real)
        plan_exchange(held, wanted, problem.source.base, problem.source.base, problem.source.tile, builder)
        held = wanted
    return joined(builder, _planned(_between(problem, source=Sharding.replicated()), planner))


def _gathered(problem: Problem, planner: str) -> Builder:
    """Where borders cross and the devices are too many to look at pieces: those dimensions are gathered first.

    Takes the memory of the source's tile with these dimensions whole.
    """
    source = problem.source.sharding
    assert source.mesh is not None  # or no border would cross
    dims = [axes if aligned else () for axes, aligned in zip(source.dims, problem.aligned_dims(), strict=True)]
    middle = Sharding.tiled(source.mesh, dims)
    first = _planned(_between(problem, target=middle), planner)
    return joined(first, _planned(_between(problem, source=middle), planner))


def _between(problem: Problem, source: Sharding | None = None, target: Sharding | None = None) -> Problem:
    """The problem with another source or target."""
    return make_problem(
        problem.shape,
        problem.element.mlir,
        source or problem.source.sharding,
        target or problem.target.sharding,
        problem.devices,
    )


def _rink(problem: Problem, shape: tuple[int, ...]) -> Builder:
    return _within(problem, shape, partial(plan_rink, shape, problem.source.tiling, problem.target.tiling))


def _best(problem: Problem, shape: tuple[int, ...]) -> Builder:
    """The digits' plan where there is one; the paper's is asked for only where it could be better."""
    digits = DigitProblem.of(problem, shape)
    if digits is not None:
        found = [_within(problem, shape, form) for form in digit_forms(digits)]
        least = min(found, key=cost)
        if least.received.max() <= problem.lower_bound_bytes or problem.devices > MOST_DEVICES_SEARCHED:
            return least
        return cheapest([_rink(problem, shape), *found])
    found = []
    if problem.devices <= MOST_DEVICES_EXCHANGED:
        found = [_exchanged(problem, by_shape) for by_shape in (False, True)]
    return cheapest([_rink(problem, shape), *(e for e in found if len(e.steps) <= MOST_ROUNDS)])


def _with_sums(problem: Problem, shape: tuple[int, ...] | None, planner: str) -> Builder:
    """Partial sums: in digits, else an all_reduce and then the plan for whole values."""
    digits = None if shape is None or planner == "rink" else DigitProblem.of(problem, shape)
    if shape is not None and digits is not None:
        return min((_within(problem, shape, form) for form in digit_forms(digits)), key=cost)
    source = problem.source.sharding
    if problem.target.summand is not None or source.mesh is None:
        raise table.UNREDUCED.error(source=str(source), target=str(problem.target.sharding))
    reduced = _between(problem, source=Sharding.tiled(source.mesh, source.dims))
    builder = _start(problem)
    builder.all_reduce(source.groups(source.unreduced))
    return joined(builder, _planned(reduced, planner))


def joined(first: Builder, second: Builder) -> Builder:
    """One plan after the other."""
    second.program = [*first.program, *second.program]
    second.steps = [*first.steps, *second.steps]
    second.received = first.received + second.received
    return second


def cheapest(candidates: list[Builder]) -> Builder:
    """The first candidate sets the bytes that none may exceed; of the rest the least by the cost model."""
    allowed = [c for c in candidates if c.received.max() <= candidates[0].received.max()]
    return min(allowed, key=cost)


def cost(builder: Builder) -> float:
    """Seconds by a plain alpha-beta model: each collective takes a latency, and as long as its busiest device."""
    collectives = [step.bytes for step in builder.steps if step.kind != "dynamic_slice"]
    return LATENCY * len(collectives) + sum(collectives) / BANDWIDTH


MOST_DEVICES_SEARCHED = 8192  # beyond this the paper's search is not run beside a plan that stands
MOST_DEVICES_EXCHANGED = 64  # beyond this, where there is another way, pieces are too many to look at
LATENCY = 10e-6  # of one collective, seconds
BANDWIDTH = 50e9  # bytes a second that one device receives


def _start(problem: Problem) -> Builder:
    return Builder(problem.source.tile, problem.element, problem.names)


def _exchanged(problem: Problem, by_shape: bool) -> Builder:
    builder = _start(problem)
    plan_exchange(
        problem.source.boxes(problem.shape),
        problem.target.boxes(problem.shape),
        problem.source.base,
        problem.target.base,
        problem.target.tile,
        builder,
        by_shape=by_shape,
    )
    return builder


def _within(problem: Problem, shape: tuple[int, ...], form: Form) -> Builder:
    """The plan ``form`` for the padded ``shape``, between padding the source tile and trimming the target's."""
    builder = _start(problem)
    tile = tuple(n // k for n, k in zip(shape, problem.source.tiling.counts, strict=True))
    if tile != builder.tile:
        builder.local(ops.Pad(tile), tile)
    form(builder)
    if builder.tile != problem.target.tile:
        builder.local(ops.Trim(problem.target.tile), problem.target.tile)
    return builder


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
        builder.received,
    )
