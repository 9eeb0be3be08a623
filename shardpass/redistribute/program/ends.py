"""The simulator's states at both ends of a problem: the tiles of devices before and after a program."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from shardpass.redistribute.problem.problem import Distribution, Problem
from shardpass.redistribute.program.state import State, fingerprints


def held_under(distribution: Distribution) -> State:
    """Return the state in which each device has its tile of ``distribution``, a problem's source or target.

    The weight of a device identifies its partial sum.
    """
    weight = None
    if distribution.summand is not None:
        weight = fingerprints(int(distribution.summand.max()) + 1)[distribution.summand]
    return State.tile(distribution.tile, distribution.base, distribution.real, weight)


def final_state(problem: Problem) -> State:
    """Return the target tiles, each with the sum of the source summands that the target adds.

    Equal shardings may list the devices of a tile in two orders, which number their summands otherwise:
    ``{devices=[2,1,2]0,2,3,1 last_tile_dims={unreduced}}`` and ``0,2,1,3``. Each device keeps its own then.
    """
    state = held_under(problem.target)
    before, after = problem.source.summand, problem.target.summand
    if before is None:
        return state
    if problem.is_nothing:
        after = before
    marks = fingerprints(int(before.max()) + 1)
    kept = np.zeros_like(before) if after is None else after
    totals = np.zeros(int(kept.max()) + 1, np.uint64)
    pairs = np.unique(kept * len(marks) + before)  # replicas of a summand count once
    np.add.at(totals, pairs // len(marks), marks[pairs % len(marks)])
    return replace(state, weight=totals[kept])
