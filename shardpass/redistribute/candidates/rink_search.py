"""The paper's search: the cheapest sequence of weak collectives between two tile shapes.

Source: Rink et al., "Memory-efficient array redistribution through portable collective communication",
sections 5 to 7.

State. A *weak type* is a tile shape, up to a permutation of the devices. For a given array it is named by
the number of tiles along each dimension, ``counts``. Which axes do the splitting is left open; as every axis
has prime size, the prime factors of the counts say how many axes of each size are in use.

Edges (``f`` is any product of axes; section 7.1's multi-axis rules), with the cost of figure 11 in elements:

1. ``dynslice(i, f)``: ``counts[i] *= f``, for axes that are not in use. Cost 0.
2. ``alltoall(i, j, f)``: ``counts[i] /= f``, ``counts[j] *= f``. Cost: the tile.
3. ``allgather(i, f)``: ``counts[i] /= f``. Cost: the tile after it.

Invariants. Counts divide the shape. The tile never exceeds ``max(source tile, target tile)``. The kinds
of edges appear in the order 1, 2, 3: the normal form of definition 4.5, which lemma 6.5 shows to lose nothing.

Example: 8x8 elements on 4 devices, from counts (4, 1) to (1, 4). ``alltoall(0, 1, 4)`` costs the tile, 16; gathering
and then slicing is no path (kinds 3, 1), and would make a tile of 64.

The search is Dijkstra's over (counts, phase reached), by cost, then by number of collectives. With ``m`` prime
axes and rank ``r`` there are at most ``C(m + r, r)`` counts.
"""

from __future__ import annotations

import heapq
import math
from collections.abc import Iterator
from dataclasses import dataclass
from enum import IntEnum
from functools import lru_cache
from itertools import islice

from shardpass.sharding.primes import divisors


class Phase(IntEnum):
    """The kinds of edges, in the order in which they occur on a path."""

    SLICE = 0
    ALL_TO_ALL = 1
    GATHER = 2


@dataclass(frozen=True, slots=True)
class WeakCollective:
    """An edge: a collective over axes of ``factor`` devices in all.

    They start (SLICE) or end (GATHER) splitting the dimension ``dim``, or go from ``dim`` to ``to`` (ALL_TO_ALL).
    """

    phase: Phase
    dim: int
    factor: int
    to: int = -1


Node = tuple[tuple[int, ...], Phase]  # counts, and the phase reached
MOST_PATHS = 16


@lru_cache(maxsize=8192)
def shortest_paths(
    shape: tuple[int, ...], source: tuple[int, ...], target: tuple[int, ...], devices: int
) -> tuple[tuple[WeakCollective, ...], ...]:
    """Find the cheapest normal-form paths from ``source`` to ``target`` (tile counts that divide ``shape``).

    All of one cost and length; MOST_PATHS at most. ``devices`` is the size of the mesh; its prime factors are the
    axes. There is always a path: slice the source down to the greatest common subdivision, move, gather.
    """
    size = math.prod(shape)
    limit = max(size // math.prod(source), size // math.prod(target))
    best: dict[Node, tuple[int, int]] = {(source, Phase.SLICE): (0, 0)}
    came: dict[Node, list[tuple[Node, WeakCollective]]] = {(source, Phase.SLICE): []}
    queue: list[tuple[int, int, tuple[int, ...], Phase]] = [(0, 0, source, Phase.SLICE)]
    reached: list[Node] = []
    while queue:
        cost, hops, counts, phase = heapq.heappop(queue)
        here = (counts, phase)
        if reached and (cost, hops) > best[reached[0]]:
            break
        if best[here] != (cost, hops):
            continue
        if counts == target:
            reached.append(here)
            continue
        tile = size // math.prod(counts)
        for step, after in _edges(shape, counts, phase, devices):
            tile_after = size // math.prod(after)
            if tile_after > limit:
                continue
            price = (0, tile, tile_after)[step.phase]
            there = (after, step.phase)
            value = (cost + price, hops + 1)
            if there not in best or value < best[there]:
                best[there] = value
                came[there] = [(here, step)]
                heapq.heappush(queue, (*value, after, step.phase))
            elif value == best[there]:
                came[there].append((here, step))
    paths = (path for node in dict.fromkeys(reached) for path in _paths(came, node))
    return tuple(islice(paths, MOST_PATHS))


def _paths(came: dict[Node, list[tuple[Node, WeakCollective]]], here: Node) -> Iterator[tuple[WeakCollective, ...]]:
    """List the paths that end at ``here``, in the order of their discovery."""
    if not came[here]:
        yield ()
    for before, step in came[here]:
        for path in _paths(came, before):
            yield (*path, step)


def _edges(
    shape: tuple[int, ...], counts: tuple[int, ...], phase: Phase, devices: int
) -> Iterator[tuple[WeakCollective, tuple[int, ...]]]:
    free = devices // math.prod(counts)
    if phase == Phase.SLICE:
        for i, n in enumerate(shape):
            for f in divisors(math.gcd(free, n // counts[i])):
                yield WeakCollective(Phase.SLICE, i, f), _with(counts, i, counts[i] * f)
    if phase <= Phase.ALL_TO_ALL:
        for i, k in enumerate(counts):
            for j, n in enumerate(shape):
                if i != j:
                    for f in divisors(math.gcd(k, n // counts[j])):
                        moved = _with(_with(counts, i, k // f), j, counts[j] * f)
                        yield WeakCollective(Phase.ALL_TO_ALL, i, f, j), moved
    for i, k in enumerate(counts):
        for f in divisors(k):
            yield WeakCollective(Phase.GATHER, i, f), _with(counts, i, k // f)


def _with(counts: tuple[int, ...], index: int, value: int) -> tuple[int, ...]:
    return (*counts[:index], value, *counts[index + 1 :])
