"""Build a swap and the following permute together, as rounds of collective_permute.

After an all_to_all in groups of g, a permute would send each device's whole tile on. Instead, each of the g chunks that
a device would have got is sent straight to where the permute brings it. The chunks that end on device d are those that
the all_to_all brings to the device ``member[d]``, whose tile d gets in the end. In round r, d is sent the chunk of the
device r places after ``member[d]`` in its group; so every device sends one chunk and gets one in every round, and may
be its own source.

Example: two groups (0, 1) and (2, 3), and a permute that exchanges 0 with 2. Device 0 ends with the tile of 2: in round
0 it gets 2's own chunk, in round 1 the chunk of 3. Together w bytes for a tile of w, where 1.5 w go the other way.
"""

from __future__ import annotations

import numpy as np

from shardpass.redistribute.candidates.sub_axes.assignments import Assignment, SubAxisProblem
from shardpass.redistribute.candidates.sub_axes.local_layout import LocalLayout, isolated, restored, windowable
from shardpass.redistribute.candidates.sub_axes.route import Route
from shardpass.redistribute.problem.device_arrays import IntArray, group_of, least_permutation, moving_pairs
from shardpass.redistribute.program import ops
from shardpass.redistribute.program.build import Builder

MOST_CHUNK_ROUNDS = 8  # beyond this their latencies weigh more than the bytes they save


def swap_in_rounds(problem: SubAxisProblem, route: Route, builder: Builder) -> None:
    """Build the swap and the permute of ``route`` as one round for each member of a swap group."""
    groups = problem.sub_axes.groups(route.swapped)
    size = groups.shape[1]
    leaving = [route.middle[m] for m in route.swapped]
    layout = windowable(problem, problem.local(route.first), leaving)
    member = least_permutation(problem.key(route.middle), problem.key(route.last))
    place = problem.sub_axes.index(route.swapped)
    shift = np.arange(size)[:, None]
    source_of = groups[group_of(groups)[member], (place[member] + shift) % size]
    take = layout.starts(_parts((place - shift) % size, leaving, problem))
    chunk = layout.window(leaving)
    program: list[ops.Op] = [] if layout.shape == builder.tile else [ops.Reshape(layout.shape)]
    coming = [route.first[m] for m in route.swapped]
    _append_rounds(problem, route.last, coming, chunk, source_of, take, place[member], program, builder)


def _append_rounds(
    problem: SubAxisProblem,
    assignment: Assignment,
    coming: list[int],
    chunk: tuple[int, ...],
    source_of: IntArray,
    take: IntArray | None,
    place: IntArray,
    program: list[ops.Op],
    builder: Builder,
) -> None:
    """Append ``program``, and rounds that bring the sub-dimensions ``coming``; the result is ``assignment``'s tile."""
    size, tile = len(source_of), problem.tile(assignment)
    names = problem.sub_axes.along(moving_pairs(source_of))
    dim = problem.leading_dim(assignment, coming)
    if dim is not None:
        placed = (*tile[:dim], tile[dim] // size, *tile[dim + 1 :])
        program.append(ops.ChunkRounds(chunk, placed, dim, source_of, take, place, names))
    else:
        local = problem.local(assignment)
        rest = [run for run in isolated(problem, local, coming).runs if run[0] not in coming]
        placed = (1, *(n for n in LocalLayout(tuple(rest), problem.sizes).shape if n > 1))
        program.append(ops.ChunkRounds(chunk, placed, 0, source_of, take, place, names))
        program += restored(problem, local, coming, (size, *placed[1:]), tile)
    builder.rounds(program, source_of, chunk, tile)


def _parts(numbers: IntArray, sub_dims: list[int], problem: SubAxisProblem) -> dict[int, IntArray]:
    """Split ``numbers`` into a part of each of ``sub_dims``, major to minor."""
    out = {}
    for t in reversed(sub_dims):
        out[t] = numbers % problem.sizes[t]
        numbers = numbers // problem.sizes[t]
    return out
