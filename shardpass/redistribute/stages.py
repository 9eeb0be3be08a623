"""The stages of a plan, for drawing: the tiles of each device after each step."""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass

from shardpass.redistribute.candidates.sums import half_added, stacked
from shardpass.redistribute.plan import Plan
from shardpass.redistribute.problem.checks import make_problem
from shardpass.redistribute.program import ops
from shardpass.redistribute.program.digits import Axis
from shardpass.redistribute.program.ends import held_under
from shardpass.redistribute.program.simulate import run
from shardpass.redistribute.program.state import State

_SHOWN = {
    ops.DynamicSlice: "dynamic_slice",
    ops.AllToAll: "all_to_all",
    ops.Permute: "collective_permute",
    ops.ChunkRounds: "collective_permute, in rounds",
    ops.Slide: "collective_permute, borders slide",
    ops.AllGather: "all_gather",
    ops.AllReduce: "all_reduce",
    ops.ReduceScatter: "reduce_scatter",
    ops.EndBoxExchange: "exchange",
}

Intervals = tuple[tuple[int, int], ...]


@dataclass(frozen=True, slots=True)
class Stage:
    """The tiles of all devices after a step of a plan, or before the first step (``title`` "source").

    ``axes``: the mesh axes over which the step communicates, as text; for the source, the shape of its tile.
    """

    title: str
    axes: str
    state: State


def stages(plan: Plan) -> list[Stage]:
    """Return the source, then the outcome of each step of ``plan``."""
    problem = make_problem(plan.shape, plan.element_type.mlir, plan.source, plan.target, plan.num_devices)
    state = held_under(problem.source)
    out = [Stage("source", "x".join(map(str, plan.source_tile)), state)]
    if stacked(problem) or half_added(problem):  # it moves as an array of one more dimension: only the ends are drawn
        return [*out, Stage("target", "of each sum", held_under(problem.target))]
    pending: list[ops.Op] = []
    for op in plan.program:
        pending.append(op)
        if isinstance(op, ops.BeginBoxExchange | ops.BoxRound):
            continue
        state = run(tuple(pending), state, plan.shape)
        pending = []
        if name := _SHOWN.get(type(op)):
            axes = ", ".join(getattr(op, "axes", ()))
            out.append(Stage(name, f"over {axes}" if axes else "", state))
    return out


def drawn_dimensions(plan: Plan) -> tuple[int | None, int | None]:
    """Return the two dimensions with the most splits, in order; None if there are fewer than two."""
    rank = len(plan.shape)
    splits = [
        max(n // max(1, tile[i]) for tile in (plan.source_tile, plan.target_tile)) for i, n in enumerate(plan.shape)
    ]
    chosen = sorted(sorted(range(rank), key=lambda i: (-splits[i], i))[:2])
    padded: list[int | None] = [*chosen, None, None]
    return padded[0], padded[1]


def covered(state: State, device: int, dim: int) -> Intervals:
    """Return the part of one dimension on the device, as disjoint intervals."""
    digits = [digit for axis in state.axes for digit in axis if digit.dim == dim]
    low = int(state.base[device, dim])
    run_length = math.prod((d.size for d in digits if d.stride == 1), start=1)
    others: Axis = tuple(d for d in digits if d.stride != 1)
    starts = [
        low + sum(p * d.stride for p, d in zip(places, others, strict=True))
        for places in itertools.product(*(range(d.size) for d in others))
    ]
    intervals: list[tuple[int, int]] = []
    for start in sorted(starts):
        if intervals and intervals[-1][1] == start:
            intervals[-1] = (intervals[-1][0], start + run_length)
        else:
            intervals.append((start, start + run_length))
    return tuple(intervals)
