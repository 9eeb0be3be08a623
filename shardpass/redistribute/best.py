"""``planner="best"``: plans in digits, priced, beside the paper's.

``route`` says which digits to slice, exchange and gather; here the exchange is given its form, the cheapest by
the cost model among

1. an all_to_all over all its digits at once (whatever dimensions they come from and go to), then a permute where some
   digits changed hands;
2. ``ChunkRounds``: both in one, as g permutes of 1/g of the tile. Its bytes are the least possible; its price
   is g steps.

Gathers are one all_gather, whatever their dimensions. Local transposes put digits where a collective wants
them, and back. The paper's plan competes: a plan with more modelled bytes than it is not taken.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial

import numpy as np

from shardpass.redistribute import ops
from shardpass.redistribute.build import NO_GROUPS, Builder
from shardpass.redistribute.digits import FREE, Axes, DigitProblem, State, arranged, runs
from shardpass.redistribute.ops import IntArray
from shardpass.redistribute.route import Route, route
from shardpass.redistribute.tiling import matched

MOST_ROUNDS = 8  # of chunks: beyond this their latencies weigh more than the bytes they save

Form = Callable[[Builder], None]


def digit_forms(problem: DigitProblem) -> list[Form]:
    """Ways to build the plan; each appends it to a builder whose tile is the (padded) source tile."""
    way = route(problem)
    forms: list[Form] = [partial(_build, problem, way, False)]
    size = math.prod(problem.names.digits[m].size for m in way.exchange)
    if way.exchange and way.middle != way.last and size <= MOST_ROUNDS:
        forms.append(partial(_build, problem, way, True))
    return forms


def _build(problem: DigitProblem, way: Route, in_rounds: bool, builder: Builder) -> None:
    _slice(problem, problem.source, way.first, builder)
    if in_rounds:
        _rounds(problem, way, builder)
    else:
        if way.exchange:
            _all_to_all(problem, way, builder)
        if way.middle != way.last:
            builder.permute(matched(problem.key(way.middle), problem.key(way.last)))
    _gather(problem, way.last, problem.target, builder)


def _slice(problem: DigitProblem, before: State, after: State, builder: Builder) -> None:
    sliced = {after[m]: m for m in range(len(after)) if before[m] == FREE and after[m] != FREE}
    if not sliced:
        return
    local = problem.local(before)
    leading = all(
        problem.digits[local[k - 1]].dim != problem.digits[t].dim or local[k - 1] in sliced
        for k, t in enumerate(local)
        if t in sliced and k
    )
    tile = problem.tile(after)
    if leading:  # the major part of each dimension: no need to see its digits apart
        starts = np.zeros((builder.devices, problem.rank), np.int64)
        for i in range(problem.rank):
            holders = [sliced[t] for t in local if t in sliced and problem.digits[t].dim == i]
            starts[:, i] = problem.number(holders) * tile[i]
        builder.dynamic_slice(tile, starts)
        return
    axes = runs(problem, local, list(sliced))
    starts = np.zeros((builder.devices, len(axes.runs)), np.int64)
    sizes = list(axes.shape)
    for a, run in enumerate(axes.runs):
        if run[0] in sliced:
            starts[:, a] = problem.number([sliced[run[0]]])
            sizes[a] = 1
    program: list[ops.Op] = [ops.Reshape(axes.shape), ops.DynamicSlice(tuple(sizes), starts), ops.Reshape(tile)]
    builder.step("dynamic_slice", program, NO_GROUPS, tile, 0)


def _all_to_all(problem: DigitProblem, way: Route, builder: Builder) -> None:
    digits, groups = way.exchange, problem.groups(way.exchange)
    size = groups.shape[1]
    leaving = [way.middle[m] for m in digits]
    coming = [way.first[m] for m in digits]
    before, after = builder.tile, problem.tile(way.middle)
    axes = runs(problem, problem.local(way.first), leaving)
    lead = [axes.runs.index((t,)) for t in leaving]
    rest = [a for a in range(len(axes.runs)) if a not in lead]
    chunk = tuple(axes.shape[a] for a in rest if axes.shape[a] > 1)
    out = runs(problem, problem.local(way.middle), coming)
    # the result comes as the digits ``coming``, then the rest; ``back`` says where each axis of ``out`` stands in it
    stands = [(t,) for t in coming] + [run for run in out.runs if run[0] not in coming]
    back = [stands.index(run) for run in out.runs]
    result = Axes(tuple(stands), problem.sizes)
    axes_names = problem.names.names(digits)
    program = [
        *arranged(before, axes, [*lead, *rest], (size, *chunk)),
        ops.AllToAll(0, 0, groups, axes_names),
        *arranged((size, *chunk), result, back, after),
    ]
    whole = builder.bytes(before)
    builder.step("all_to_all", program, groups, after, whole - whole // size, axes_names)


def _rounds(problem: DigitProblem, way: Route, builder: Builder) -> None:
    """Round r: whoever stands at place k of an exchange group is sent the chunk of place k + r."""
    digits, groups = way.exchange, problem.groups(way.exchange)
    size = groups.shape[1]
    leaving = [way.middle[m] for m in digits]
    coming = [way.first[m] for m in digits]
    axes = runs(problem, problem.local(way.first), leaving)
    out = runs(problem, problem.local(way.middle), coming)
    # after the all_to_all a tile would still go from ``member[d]`` to d: send each chunk to d at once
    member = matched(problem.key(way.middle), problem.key(way.last))
    place = problem.number(digits)
    group_of = np.empty(builder.devices, np.int64)
    group_of[groups] = np.arange(len(groups))[:, None]
    shift = np.arange(size)[:, None]
    source_of = groups[group_of[member], (place[member] + shift) % size]
    take = _digit_starts(problem, digits, (place - shift) % size, [axes.runs.index((t,)) for t in leaving], axes)
    put = _digit_starts(problem, digits, (place[member] + shift) % size, [out.runs.index((t,)) for t in coming], out)
    chunk = tuple(1 if run[0] in leaving else n for run, n in zip(axes.runs, axes.shape, strict=True))
    placed = tuple(1 if run[0] in coming else n for run, n in zip(out.runs, out.shape, strict=True))
    after = problem.tile(way.last)
    here = np.arange(builder.devices)
    moved = source_of != here
    pairs = np.stack([source_of, np.broadcast_to(here, source_of.shape)], axis=-1)[moved]
    names = problem.names.along(pairs)
    program: list[ops.Op] = [
        *([] if axes.shape == builder.tile else [ops.Reshape(axes.shape)]),
        ops.ChunkRounds(chunk, placed, out.shape, source_of, take, put, names),
        *([] if out.shape == after else [ops.Reshape(after)]),
    ]
    builder.program += program
    part = builder.bytes(chunk)
    for r in range(size):
        if moved[r].any():
            builder.step(
                "collective_permute",
                (),
                np.stack([source_of[r], here], axis=1)[moved[r]],
                after if r == size - 1 else builder.tile,
                np.where(moved[r], part, 0),
                names,
            )


def _digit_starts(
    problem: DigitProblem, digits: tuple[int, ...], numbers: IntArray, where: list[int], axes: Axes
) -> IntArray:
    """``numbers`` [rounds, devices] written in ``digits``, each on its axis. [rounds, devices, axes]."""
    starts = np.zeros((*numbers.shape, len(axes.runs)), np.int64)
    left = numbers
    for m, a in zip(reversed(digits), reversed(where), strict=True):
        size = problem.names.digits[m].size
        starts[:, :, a] = left % size
        left = left // size
    return starts


def _gather(problem: DigitProblem, before: State, after: State, builder: Builder) -> None:
    """One all_gather of all digits that become local, on a new leading axis, and a transpose that puts them back."""
    digits = [m for m in range(len(after)) if before[m] != FREE and after[m] == FREE]
    if not digits:
        return
    digits.sort(key=lambda m: before[m])
    groups = problem.groups(digits)
    size = groups.shape[1]
    coming = [before[m] for m in digits]
    tile, full = builder.tile, problem.tile(after)
    out = runs(problem, problem.local(after), coming)
    stands = [(t,) for t in coming] + [run for run in out.runs if run[0] not in coming]
    result = Axes(tuple(stands), problem.sizes)
    back = [stands.index(run) for run in out.runs]
    names = problem.names.names(digits)
    lead = (size, *(n for n in result.shape[len(coming) :] if n > 1))
    program: list[ops.Op] = []
    if (1, *lead[1:]) != tile:
        program.append(ops.Reshape((1, *lead[1:])))
    program += [ops.AllGather(0, groups, names), *arranged(lead, result, back, full)]
    builder.step("all_gather", program, groups, full, builder.bytes(tile) * (size - 1), names)
