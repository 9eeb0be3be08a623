"""The strategies of ``planner="best"``: alternatives for the steps of a route; the cheapest wins.

``route`` says which sub-axes to slice, swap, permute and gather. The steps of one kind are one op each, with local
transposes that put sub-dimensions where the op wants them. For the swap and the permute after it there are up to
three strategies:

1. One all_to_all over all sub-axes that swap, whatever dimensions they leave and take; then the permute, if any.
2. Both at once in rounds (``ops.ChunkRounds``): g permutes of 1/g of the tile each, for a swap in groups of g. Its
   bytes are the least possible, its price is g latencies. Up to ``MOST_CHUNK_ROUNDS`` rounds.
3. An all_to_all for each hop of the route, and no permute, where the route has hops.

Example: x:A, y:B to x:B, y:C, all of size 2, w bytes a tile. By 1 a device receives w/2 and then w; by 2, in two
rounds, w/2 each; by 3 also w/2 twice. The gathers (``gathers``) follow. The paper's plan
competes in ``search``: plans with more modelled bytes than that are dropped.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from shardpass.cost.collective import bytes_received
from shardpass.redistribute.candidates.sub_axes.all_to_all import swap
from shardpass.redistribute.candidates.sub_axes.assignments import REPLICATED, Assignment, SubAxisProblem
from shardpass.redistribute.candidates.sub_axes.gathers import gather
from shardpass.redistribute.candidates.sub_axes.local_layout import isolated, rearranged, windowable
from shardpass.redistribute.candidates.sub_axes.rounds import MOST_CHUNK_ROUNDS, swap_in_rounds
from shardpass.redistribute.candidates.sub_axes.route import Route, find_routes
from shardpass.redistribute.problem.device_arrays import least_permutation
from shardpass.redistribute.program import ops
from shardpass.redistribute.program.build import NO_GROUPS, Builder, Strategy, in_sequence
from shardpass.redistribute.program.steps import StepKind

Part = Callable[[SubAxisProblem, Route, Builder], None]


def strategies(problem: SubAxisProblem) -> list[Strategy]:
    """List functions that append a plan to a builder, whose tile is the (padded) source tile."""
    return [strategy for route in find_routes(problem) for strategy in _strategies_of(problem, route)]


def detour_strategies(halves: tuple[SubAxisProblem, SubAxisProblem]) -> list[Strategy]:
    """Combine the first strategy of the first half with each of the second half."""
    first, *_ = strategies(halves[0])
    return [in_sequence(first, second) for second in strategies(halves[1])]


def common_tile_strategies(ends: tuple[SubAxisProblem, SubAxisProblem]) -> list[Strategy]:
    """Combine the first strategy of the first problem, the permute, and each strategy of the second problem."""
    before, after = ends
    first, *_ = strategies(before)
    source_of = least_permutation(before.key(before.target), after.key(after.source))
    return [in_sequence(first, lambda builder: builder.permute(source_of), strategy) for strategy in strategies(after)]


def _strategies_of(problem: SubAxisProblem, route: Route) -> list[Strategy]:
    moves: list[Part] = [_swap_then_permute if route.swapped else _permute]
    if route.swapped and route.middle != route.last:
        if problem.sub_axes.count(route.swapped) <= MOST_CHUNK_ROUNDS:
            moves.append(swap_in_rounds)
        if route.hops:
            moves.append(_swap_in_hops)
    return [partial(_build, problem, route, move) for move in moves]


def _build(problem: SubAxisProblem, route: Route, move: Part, builder: Builder) -> None:
    sliced = tuple(REPLICATED if m in problem.summed else t for m, t in enumerate(route.first))
    _slice(problem, problem.source, sliced, builder)
    _reduce(problem, sliced, route.first, builder)
    move(problem, route, builder)
    gather(problem, route, builder)


def _slice(problem: SubAxisProblem, before: Assignment, after: Assignment, builder: Builder) -> None:
    """Build one dynamic_slice for all sub-axes that change from replicated to splitting."""
    sliced = {after[m]: m for m in range(len(after)) if before[m] == REPLICATED and after[m] != REPLICATED}
    if not sliced:
        return
    layout = windowable(problem, problem.local(before), list(sliced))
    starts = layout.starts({t: problem.sub_axes.index([m]) for t, m in sliced.items()})
    tile, window = problem.tile(after), layout.window(list(sliced))
    if layout.shape == builder.tile and window == tile:
        builder.dynamic_slice(tile, starts)
        return
    program: list[ops.Op] = [ops.DynamicSlice(window, starts)]
    if layout.shape != builder.tile:
        program.insert(0, ops.Reshape(layout.shape))
    if window != tile:
        program.append(ops.Reshape(tile))
    builder.step(StepKind.DYNAMIC_SLICE, program, NO_GROUPS, tile, 0)


def _reduce(problem: SubAxisProblem, before: Assignment, after: Assignment, builder: Builder) -> None:
    """Add partial sums: a reduce_scatter over sub-axes that split the result, an all_reduce over the others."""
    scattered = sorted((m for m in problem.summed if after[m] != REPLICATED), key=lambda m: after[m])
    if scattered:
        groups, names = problem.sub_axes.groups(scattered), problem.sub_axes.names(scattered)
        size = groups.shape[1]
        leaving = [after[m] for m in scattered]
        layout = isolated(problem, problem.local(before), leaving)
        lead = [layout.runs.index((t,)) for t in leaving]
        rest = [a for a in range(len(layout.runs)) if a not in lead]
        shape = (size, *(layout.shape[a] for a in rest if layout.shape[a] > 1))
        tile = problem.tile(after)
        program = [
            *rearranged(builder.tile, layout, [*lead, *rest], shape),
            ops.ReduceScatter(0, groups, builder.reduction, names),
            *([] if tile == (1, *shape[1:]) else [ops.Reshape(tile)]),
        ]
        moved = bytes_received(StepKind.REDUCE_SCATTER, builder.bytes(builder.tile), size)
        builder.step(StepKind.REDUCE_SCATTER, program, groups, tile, moved, names)
    reduced = [m for m in problem.summed if after[m] == REPLICATED]
    if reduced:
        builder.all_reduce(problem.sub_axes.groups(reduced))


def _permute(problem: SubAxisProblem, route: Route, builder: Builder) -> None:
    if route.middle != route.last:
        builder.permute(least_permutation(problem.key(route.middle), problem.key(route.last)))


def _swap_then_permute(problem: SubAxisProblem, route: Route, builder: Builder) -> None:
    swap(problem, route.first, route.middle, builder)
    _permute(problem, route, builder)


def _swap_in_hops(problem: SubAxisProblem, route: Route, builder: Builder) -> None:
    before = route.first
    for after in route.hops:
        swap(problem, before, after, builder)
        before = after
