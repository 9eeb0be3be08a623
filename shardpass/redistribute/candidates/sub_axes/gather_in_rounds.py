"""Gather in rounds that need little memory beyond the result, for memory limits that exclude cheaper candidates.

An all_gather along another dimension than the leading one is gathered in front and transposed, so its result is in
memory twice (``program.memory``). In rounds each tile is put in its place as it arrives: the result is in memory once,
with two tiles beside it. The price is one permute for each member of a group.

The gather is split into one for each dimension that grows, as tiles of one round must go to one place along one
dimension. They run in order of growth, the dimension with the smallest groups first: a round needs two of the tiles
that it gathers, and so the memory beside the result is two tiles of the last gather, which are smallest where the last
gather has the largest groups. A gather along the leading dimension stays one all_gather.

Example: f32[24, 24] from [{}, {a}] to replicated, a=4, tiles of 24x6. An all_gather needs the result twice, 1,152
elements; 4 rounds need it once and two tiles, 864. Under a limit of 3,456 bytes the rounds are chosen.

O(devices) for each round.
"""

from __future__ import annotations

import math
from dataclasses import replace
from functools import partial

import numpy as np

from shardpass.redistribute.candidates.sub_axes.assignments import REPLICATED, Assignment, SubAxisProblem
from shardpass.redistribute.candidates.sub_axes.route import find_route
from shardpass.redistribute.candidates.sub_axes.strategies import strategies
from shardpass.redistribute.problem.device_arrays import group_of, moving_pairs
from shardpass.redistribute.program import ops
from shardpass.redistribute.program.build import Builder, Strategy, in_sequence

MOST_GATHER_ROUNDS = 32  # of one gather


def strategies_gathering_in_rounds(problem: SubAxisProblem) -> list[Strategy]:
    """Return the strategies with one gather per dimension, in rounds if rounds need less memory."""
    last = find_route(problem).last
    by_dim: dict[int, list[int]] = {}
    for m, t in enumerate(last):
        if t != REPLICATED and problem.target[m] == REPLICATED:
            by_dim.setdefault(problem.sub_dims[t].dim, []).append(m)
    if not by_dim:
        return []
    before: Assignment = last
    gathers: list[Strategy] = []
    for gathered in sorted(by_dim.values(), key=problem.sub_axes.count):
        after = tuple(REPLICATED if m in gathered else t for m, t in enumerate(before))
        gathers.append(_gather(replace(problem, source=before, target=after, summed=()), gathered))
        before = after
    return [in_sequence(strategy, *gathers) for strategy in strategies(replace(problem, target=last))]


def _gather(stage: SubAxisProblem, gathered: list[int]) -> Strategy:
    """Gather over the sub-axes ``gathered``, which split one dimension."""
    gathered = sorted(gathered, key=lambda m: stage.source[m])
    dim = stage.leading_dim(stage.target, [stage.source[m] for m in gathered])
    in_front = dim is not None and math.prod(stage.tile(stage.target)[:dim]) == 1
    if dim is None or in_front or stage.sub_axes.count(gathered) > MOST_GATHER_ROUNDS:
        return strategies(stage)[0]
    return partial(_in_rounds, stage, gathered, dim)


def _in_rounds(stage: SubAxisProblem, gathered: list[int], dim: int, builder: Builder) -> None:
    """Gather in rounds: round r writes the tile of the member r places further at its place on ``dim``."""
    groups, place = stage.sub_axes.groups(gathered), stage.sub_axes.index(gathered)
    size, chunk = groups.shape[1], builder.tile
    source_of = groups[group_of(groups), (place + np.arange(size)[:, None]) % size]
    names = stage.sub_axes.along(moving_pairs(source_of))
    rounds = ops.ChunkRounds(chunk, chunk, dim, source_of, None, place, names)
    builder.rounds([rounds], source_of, chunk, stage.tile(stage.target))
