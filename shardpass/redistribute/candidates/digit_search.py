"""``planner="best"``: plans in digits, priced, beside the paper's.

``route`` says which digits to slice, exchange and gather; here the exchange is given its form, the cheapest by
the cost model among

1. an all_to_all over all its digits at once (whatever dimensions they come from and go to), then a permute where some
   digits changed hands;
2. ``ChunkRounds``: both in one, as g permutes of 1/g of the tile. Its bytes are the least possible; its price
   is g steps;
3. the all_to_all over all digits but one, and the rounds of that one;
4. an all_to_all for each stage, where no permute is needed if digits leave in the right order (``route``).

Gathers are one all_gather, whatever their dimensions, or two, the leading dimension's last. Local transposes put
digits where a collective wants them, and back. The paper's plan competes: a plan with more modelled bytes than it is
not taken.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from functools import partial

import numpy as np

from shardpass.redistribute.candidates.digit_forms import (
    FREE,
    Assignment,
    Axes,
    DigitProblem,
    apart,
    arranged,
    windowed,
)
from shardpass.redistribute.candidates.route import Route, routes
from shardpass.redistribute.problem.device_arrays import IntArray, matched, row_of, travels
from shardpass.redistribute.program import ops
from shardpass.redistribute.program.build import NO_GROUPS, Builder, Form, in_sequence
from shardpass.redistribute.program.steps import StepKind

LONG_RUN = 256  # bytes: pieces that are joined in runs as long need no help
SHORT_RUN = 32  # bytes: pieces as short XLA puts in place itself better than a transpose does
MOST_CHUNK_ROUNDS = 8  # of chunks: beyond this their latencies weigh more than the bytes they save

Part = Callable[[DigitProblem, Route, Builder], None]


def digit_forms(problem: DigitProblem) -> list[Form]:
    """Ways to build the plan; each appends it to a builder whose tile is the (padded) source tile."""
    return [form for way in routes(problem) for form in _route_forms(problem, way)]


def _route_forms(problem: DigitProblem, way: Route) -> list[Form]:
    parts: list[Part] = [_all_to_all if way.exchange else _permute]
    if way.exchange and way.middle != way.last:
        if problem.size(way.exchange) <= MOST_CHUNK_ROUNDS:
            parts.append(_exchange_in_rounds)
        if len(way.exchange) > 1:
            parts.append(_split_exchange)
        if way.stages:
            parts.append(_exchange_in_stages)
    gathers: list[Part] = [_gather]
    if _leading(problem, way):
        gathers.append(_gather_in_two)
    return [partial(_build, problem, way, part, gather) for gather in gathers for part in parts]


def detour_forms(halves: tuple[DigitProblem, DigitProblem]) -> list[Form]:
    """Ways to build a plan of two halves."""
    first, *_ = digit_forms(halves[0])
    return [in_sequence(first, form) for form in digit_forms(halves[1])]


def _build(problem: DigitProblem, way: Route, exchange: Part, gather: Part, builder: Builder) -> None:
    sliced = tuple(FREE if m in problem.partial else t for m, t in enumerate(way.first))
    _slice(problem, problem.source, sliced, builder)
    _reduce(problem, sliced, way.first, builder)
    exchange(problem, way, builder)
    gather(problem, way, builder)


def _slice(problem: DigitProblem, before: Assignment, after: Assignment, builder: Builder) -> None:
    sliced = {after[m]: m for m in range(len(after)) if before[m] == FREE and after[m] != FREE}
    if not sliced:
        return
    axes = windowed(problem, problem.local(before), list(sliced))
    starts = axes.starts({t: problem.number([m]) for t, m in sliced.items()})
    tile, window = problem.tile(after), axes.window(list(sliced))
    program: list[ops.Op] = [ops.DynamicSlice(window, starts)]
    if axes.shape != builder.tile:
        program.insert(0, ops.Reshape(axes.shape))
    if window != tile:
        program.append(ops.Reshape(tile))
    builder.step(StepKind.DYNAMIC_SLICE, program, NO_GROUPS, tile, 0)


def _reduce(problem: DigitProblem, before: Assignment, after: Assignment, builder: Builder) -> None:
    """Partial sums are added where they would have been sliced (reduce_scatter), then along all other axes."""
    scattered = sorted((m for m in problem.partial if after[m] != FREE), key=lambda m: after[m])
    if scattered:
        groups, names = problem.groups(scattered), problem.names.names(scattered)
        size = groups.shape[1]
        leaving = [after[m] for m in scattered]
        axes = apart(problem, problem.local(before), leaving)
        lead = [axes.runs.index((t,)) for t in leaving]
        rest = [a for a in range(len(axes.runs)) if a not in lead]
        shape = (size, *(axes.shape[a] for a in rest if axes.shape[a] > 1))
        tile = problem.tile(after)
        program = [
            *arranged(builder.tile, axes, [*lead, *rest], shape),
            ops.ReduceScatter(0, groups, builder.reduction, names),
            *([] if tile == (1, *shape[1:]) else [ops.Reshape(tile)]),
        ]
        whole = builder.bytes(builder.tile)
        builder.step(StepKind.REDUCE_SCATTER, program, groups, tile, whole - whole // size, names)
    summed = [m for m in problem.partial if after[m] == FREE]
    if summed:
        builder.all_reduce(problem.groups(summed))


def _permute(problem: DigitProblem, way: Route, builder: Builder) -> None:
    if way.middle != way.last:
        builder.permute(matched(problem.key(way.middle), problem.key(way.last)))


def _all_to_all(problem: DigitProblem, way: Route, builder: Builder) -> None:
    _swap(problem, way.first, way.middle, builder)
    _permute(problem, way, builder)


def _exchange_in_stages(problem: DigitProblem, way: Route, builder: Builder) -> None:
    """An all_to_all for each stage, and no permute."""
    before = way.first
    for after in way.stages:
        _swap(problem, before, after, builder)
        before = after


def _split_exchange(problem: DigitProblem, way: Route, builder: Builder) -> None:
    """An all_to_all over all digits but the greatest, which takes the permute along in rounds."""
    late = max(way.exchange, key=lambda m: problem.names.digits[m].size)
    first = tuple(t if m in way.exchange and m != late else way.first[m] for m, t in enumerate(way.middle))
    _swap(problem, way.first, first, builder)
    _exchange_in_rounds(problem, replace(way, first=first, exchange=(late,)), builder)


def _swap(problem: DigitProblem, before: Assignment, after: Assignment, builder: Builder) -> None:
    """One all_to_all for all mesh digits that hold another tensor digit after it, each a local one."""
    digits = sorted((m for m, t in enumerate(after) if t != before[m]), key=lambda m: after[m])
    groups = problem.groups(digits)
    leaving, coming = [after[m] for m in digits], [before[m] for m in digits]
    whole, tile = builder.tile, problem.tile(after)
    names = problem.names.names(digits)
    split, concat = block_dim(problem, before, leaving), block_dim(problem, after, coming)
    local = problem.local(before)
    first = local.index(leaving[0])
    program: list[ops.Op]
    if split is not None and concat is not None and _joins_well(whole, tile, split, concat, builder):
        program = [ops.AllToAll(split, concat, groups, names)]
    elif local[first : first + len(leaving)] == leaving:
        program = _swap_in_place(problem, local, first, coming, after, groups, names)
    else:
        program = _swap_in_front(problem, builder, local, leaving, coming, after, groups, names)
    held = builder.bytes(whole)
    builder.step(StepKind.ALL_TO_ALL, program, groups, tile, held - held // groups.shape[1], names)


def _joins_well(before: tuple[int, ...], after: tuple[int, ...], split: int, concat: int, builder: Builder) -> bool:
    """Whether XLA joins the pieces along ``concat`` in long runs, and does not cut them along the last dimension."""
    run = builder.bytes((before[concat], *after[concat + 1 :]))
    in_front = math.prod(after[:concat]) == 1
    return math.prod(before[split + 1 :]) > 1 and (in_front or run >= LONG_RUN)


def _swap_in_place(
    problem: DigitProblem,
    local: list[int],
    first: int,
    coming: list[int],
    after: Assignment,
    groups: IntArray,
    names: tuple[str, ...],
) -> list[ops.Op]:
    """The digits that leave stand together: those that come take their places, and then go to their own.

    XLA cuts the pieces and joins them along one axis, in long runs, and the transpose goes with the joining.
    """
    size = groups.shape[1]
    ahead, behind = local[:first], local[first + len(coming) :]
    left, right = (math.prod(problem.sizes[t] for t in part) for part in (ahead, behind))
    grid, axis = ((size, right), 0) if left == 1 else ((left, size, right), 1)
    mixed = [*ahead, *coming, *behind]
    stands = Axes(tuple((t,) for t in mixed), problem.sizes)
    order = [mixed.index(t) for t in problem.local(after)]
    return [
        ops.Reshape(grid),
        ops.AllToAll(axis, axis, groups, names),
        *arranged(grid, stands, order, problem.tile(after)),
    ]


def _swap_in_front(
    problem: DigitProblem,
    builder: Builder,
    local: list[int],
    leaving: list[int],
    coming: list[int],
    after: Assignment,
    groups: IntArray,
    names: tuple[str, ...],
) -> list[ops.Op]:
    """The digits that leave are first brought in front."""
    axes = apart(problem, local, leaving)
    lead = [axes.runs.index((t,)) for t in leaving]
    rest = [a for a in range(len(axes.runs)) if a not in lead]
    shape = (groups.shape[1], *(axes.shape[a] for a in rest if axes.shape[a] > 1))
    return [
        *arranged(builder.tile, axes, [*lead, *rest], shape),
        ops.AllToAll(0, 0, groups, names),
        *_put_back(problem, after, coming, shape, problem.tile(after)),
    ]


def block_dim(problem: DigitProblem, state: Assignment, digits: list[int]) -> int | None:
    """The dimension of which ``digits`` are the most major local ones, in order; None where they are not."""
    dim = problem.digits[digits[0]].dim
    local = [t for t in problem.local(state) if problem.digits[t].dim == dim]
    return dim if local[: len(digits)] == digits else None


def _put_back(
    problem: DigitProblem, state: Assignment, coming: list[int], shape: tuple[int, ...], tile: tuple[int, ...]
) -> list[ops.Op]:
    """From an array of ``shape`` with the digits ``coming`` in front to the tile of ``state``."""
    out = apart(problem, problem.local(state), coming)
    stands = [*((t,) for t in coming), *(run for run in out.runs if run[0] not in coming)]
    return arranged(shape, Axes(tuple(stands), problem.sizes), [stands.index(run) for run in out.runs], tile)


def _exchange_in_rounds(problem: DigitProblem, way: Route, builder: Builder) -> None:
    """Round r: whoever stands at place k of an exchange group is sent the chunk of place k by the one at k + r."""
    digits, groups = way.exchange, problem.groups(way.exchange)
    size = groups.shape[1]
    leaving = [way.middle[m] for m in digits]
    axes = windowed(problem, problem.local(way.first), leaving)
    # after the all_to_all a tile would still go from ``member[d]`` to d: send each chunk to d at once
    member = matched(problem.key(way.middle), problem.key(way.last))
    place = problem.number(digits)
    shift = np.arange(size)[:, None]
    source_of = groups[row_of(groups)[member], (place[member] + shift) % size]
    take = axes.starts(_written((place - shift) % size, leaving, problem))
    chunk = axes.window(leaving)
    program: list[ops.Op] = [] if axes.shape == builder.tile else [ops.Reshape(axes.shape)]
    coming = [way.first[m] for m in digits]
    _append_rounds(problem, way.last, coming, chunk, source_of, take, place[member], program, builder)


def _append_rounds(
    problem: DigitProblem,
    state: Assignment,
    coming: list[int],
    chunk: tuple[int, ...],
    source_of: IntArray,
    take: IntArray | None,
    place: IntArray,
    program: list[ops.Op],
    builder: Builder,
) -> None:
    """``program``, then rounds that bring the digits ``coming``; the local array ends as the tile of ``state``."""
    size, tile = len(source_of), problem.tile(state)
    names = problem.names.along(travels(source_of))
    dim = block_dim(problem, state, coming)
    if dim is not None:
        placed = (*tile[:dim], tile[dim] // size, *tile[dim + 1 :])
        program.append(ops.ChunkRounds(chunk, placed, dim, source_of, take, place, names))
    else:
        rest = [run for run in apart(problem, problem.local(state), coming).runs if run[0] not in coming]
        placed = (1, *(n for n in Axes(tuple(rest), problem.sizes).shape if n > 1))
        program.append(ops.ChunkRounds(chunk, placed, 0, source_of, take, place, names))
        program += _put_back(problem, state, coming, (size, *placed[1:]), tile)
    builder.rounds(program, source_of, chunk, tile)


def _written(numbers: IntArray, tensor_digits: list[int], problem: DigitProblem) -> dict[int, IntArray]:
    """``numbers`` in ``tensor_digits``, major to minor."""
    out = {}
    for t in reversed(tensor_digits):
        out[t] = numbers % problem.sizes[t]
        numbers = numbers // problem.sizes[t]
    return out


def _gathered(problem: DigitProblem, way: Route) -> list[int]:
    """The mesh digits whose tensor digits become local at the end, by tensor digit."""
    found = [m for m, t in enumerate(way.last) if t != FREE and problem.target[m] == FREE]
    return sorted(found, key=lambda m: way.last[m])


def _gather(problem: DigitProblem, way: Route, builder: Builder) -> None:
    _gather_to(problem, problem.target, _gathered(problem, way), way, builder)


def _gather_in_two(problem: DigitProblem, way: Route, builder: Builder) -> None:
    """The digits that end in front come last: they need no transpose, and the others are gathered on a smaller tile."""
    last = _leading(problem, way)
    inner = [m for m in _gathered(problem, way) if m not in last]
    between = tuple(way.last[m] if m in last else t for m, t in enumerate(problem.target))
    _gather_to(problem, between, inner, way, builder)
    _gather_to(problem, problem.target, last, way, builder)


def _leading(problem: DigitProblem, way: Route) -> list[int]:
    """Of several gathered mesh digits those whose tensor digits end as the most major of the whole local array."""
    digits = _gathered(problem, way)
    local = [t for t in problem.local(problem.target) if problem.sizes[t] > 1]
    count = 0
    while count < len(digits) and way.last[digits[count]] == local[count]:
        count += 1
    return digits[:count] if count < len(digits) else []


def _gather_to(problem: DigitProblem, after: Assignment, digits: list[int], way: Route, builder: Builder) -> None:
    """One all_gather of ``digits``, on a new leading axis, and a transpose that puts them back."""
    if not digits:
        return
    groups = problem.groups(digits)
    size = groups.shape[1]
    coming = [way.last[m] for m in digits]
    names = problem.names.names(digits)
    tile, full = builder.tile, problem.tile(after)
    dim = block_dim(problem, after, coming)
    if dim is not None and (math.prod(tile[:dim]) == 1 or builder.bytes(tile[dim:]) <= SHORT_RUN):
        builder.all_gather(dim, groups)
        return
    rest = [run for run in apart(problem, problem.local(after), coming).runs if run[0] not in coming]
    lead = (1, *(n for n in Axes(tuple(rest), problem.sizes).shape if n > 1))
    program: list[ops.Op] = [] if lead == tile else [ops.Reshape(lead)]
    program.append(ops.AllGather(0, groups, names))
    program += _put_back(problem, after, coming, (size, *lead[1:]), full)
    builder.step(StepKind.ALL_GATHER, program, groups, full, builder.bytes(tile) * (size - 1), names)
