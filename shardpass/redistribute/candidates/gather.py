"""Gather, then slice: the best candidate if latencies outweigh bytes.

Every device first gathers all that source and target do not split alike, and then slices its target tile: one
collective, whatever the problem, for the memory and the bytes of the tile in between, the *meet*. From [{x}, {y}] to
[{x}, {z}] the meet is [{x}, {}]. The meet is greater than both tiles, so that the limit "max" excludes this candidate.
It is what XLA's partitioner falls back to, with the whole array as the meet.
"""

from __future__ import annotations

from itertools import takewhile

from shardpass.redistribute.problem.problem import Problem
from shardpass.sharding import AxisRef, Sharding


def meet(problem: Problem) -> Sharding | None:
    """Return the sharding over only the axes common to source and target; None if equal to either.

    On each dimension it keeps the most major axes that both have.
    """
    if problem.source.only is not None or problem.target.only is not None:
        return None
    source, target = (side.sharding.on(problem.mesh) for side in (problem.source, problem.target))
    if source is None or target is None:  # no mesh can say both
        return Sharding.replicated()
    sides = [_dims(sharding, len(problem.shape)) for sharding in (source, target)]
    shared = tuple(_prefix(ours, theirs) for ours, theirs in zip(*sides, strict=True))
    return None if shared in sides else Sharding.tiled(problem.mesh, shared)


def _dims(sharding: Sharding, rank: int) -> tuple[tuple[AxisRef, ...], ...]:
    return sharding.dims or ((),) * rank


def _prefix(ours: tuple[AxisRef, ...], theirs: tuple[AxisRef, ...]) -> tuple[AxisRef, ...]:
    alike = takewhile(lambda pair: pair[0] == pair[1], zip(ours, theirs, strict=False))
    return tuple(axis for axis, _ in alike)
