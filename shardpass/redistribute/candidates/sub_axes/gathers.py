"""The gathers that end a route: one all_gather for all sub-axes, or two.

XLA gathers along the leading axis of an array without a copy; along any other axis it gathers in front and transposes.
So the tile is seen with a new axis in front, gathered along that, and transposed once, whatever dimensions grow.

1. One all_gather over all sub-axes, and the transpose.
2. Two, where the sub-dimensions of some of the sub-axes end in front of the whole local array: first the others, with
   the transpose of a smaller array; then these, without one. f32[512, 256, 256] from [{c}, {a}, {b}] to replicated:
   a and b are gathered and transposed on 256x256x256, then c doubles the array.
"""

from __future__ import annotations

import math

from shardpass.cost.collective import bytes_received
from shardpass.redistribute.candidates.sub_axes.assignments import REPLICATED, Assignment, SubAxisProblem
from shardpass.redistribute.candidates.sub_axes.local_layout import LocalLayout, isolated, restored
from shardpass.redistribute.candidates.sub_axes.route import Route
from shardpass.redistribute.program import ops
from shardpass.redistribute.program.build import Builder
from shardpass.redistribute.program.steps import StepKind

SHORT_RUN = 32  # bytes: XLA puts pieces as short in place itself better than a transpose does


def gather(problem: SubAxisProblem, route: Route, builder: Builder) -> None:
    """Build one all_gather over all sub-axes that the target does not split over, and a slice (form 1)."""
    _gather_to(problem, problem.target, _gathered(problem, route), route, builder)


def gather_in_two(problem: SubAxisProblem, route: Route, builder: Builder) -> None:
    """Build two all_gathers, the second over the sub-axes that must come last (form 2)."""
    last = gathered_last(problem, route)
    inner = [m for m in _gathered(problem, route) if m not in last]
    between = tuple(route.last[m] if m in last else t for m, t in enumerate(problem.target))
    _gather_to(problem, between, inner, route, builder)
    _gather_to(problem, problem.target, last, route, builder)


def gathered_last(problem: SubAxisProblem, route: Route) -> list[int]:
    """Return the gathered sub-axes whose sub-dimensions end as the most major of the whole local array."""
    gathered = _gathered(problem, route)
    local = [t for t in problem.local(problem.target) if problem.sizes[t] > 1]
    count = 0
    while count < len(gathered) and route.last[gathered[count]] == local[count]:
        count += 1
    return gathered[:count] if count < len(gathered) else []


def _gathered(problem: SubAxisProblem, route: Route) -> list[int]:
    """Return the sub-axes that release their sub-dimensions at the end, by sub-dimension."""
    gathered = [m for m, t in enumerate(route.last) if t != REPLICATED and problem.target[m] == REPLICATED]
    return sorted(gathered, key=lambda m: route.last[m])


def _gather_to(problem: SubAxisProblem, after: Assignment, gathered: list[int], route: Route, builder: Builder) -> None:
    """Build one all_gather over ``gathered``, after which the local array is the tile of ``after``."""
    if not gathered:
        return
    groups = problem.sub_axes.groups(gathered)
    size = groups.shape[1]
    coming = [route.last[m] for m in gathered]
    names = problem.sub_axes.names(gathered)
    tile, full = builder.tile, problem.tile(after)
    dim = problem.leading_dim(after, coming)
    if dim is not None and (math.prod(tile[:dim]) == 1 or builder.bytes(tile[dim:]) <= SHORT_RUN):
        builder.all_gather(dim, groups)
        return
    local = problem.local(after)
    rest = [run for run in isolated(problem, local, coming).runs if run[0] not in coming]
    lead = (1, *(n for n in LocalLayout(tuple(rest), problem.sizes).shape if n > 1))
    in_front: list[ops.Op] = [] if lead == tile else [ops.Reshape(lead)]
    in_front.append(ops.AllGather(0, groups, names))
    in_front += restored(problem, local, coming, (size, *lead[1:]), full)
    forms = [in_front]
    if dim is not None and builder.prices.gathers_by_pieces:
        forms.append([ops.AllGather(dim, groups, names, by_pieces=True)])
    program = builder.cheapest(forms)
    kind = StepKind.ALL_GATHER if program is in_front else StepKind.ALL_TO_ALL
    builder.step(kind, program, groups, full, bytes_received(kind, builder.bytes(tile) * size, size), names)
