"""A local array with its sub-dimensions grouped into axes, and the reshapes and transposes between such groupings.

A collective works along one axis of an array, a slice cuts along axes. To work on chosen sub-dimensions, the local
array is seen with axes on which these stand alone: a reshape that moves nothing. For example the tile 4x8 with the
sub-dimensions 1 (4) of dimension 0 and 2 (2), 3 (2), 4 (2) of dimension 1:

    by dimension        ((1,), (2, 3, 4))       4 x 8
    isolated 3          ((1,), (2,), (3,), (4,))    4 x 2 x 2 x 2
    windowable for 2    ((1,), (2, 3, 4))       4 x 8: part c of 2 is the window of 4 columns from 4c on
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby

import numpy as np

from shardpass.redistribute.candidates.sub_axes.assignments import SubAxisProblem
from shardpass.redistribute.problem.device_arrays import IntArray
from shardpass.redistribute.program.ops import Op, Reshape, Transpose


@dataclass(frozen=True, slots=True)
class LocalLayout:
    """A local array whose axes are ``runs`` of sub-dimensions, each major to minor."""

    runs: tuple[tuple[int, ...], ...]
    sizes: tuple[int, ...]  # of all sub-dimensions of the problem

    @property
    def shape(self) -> tuple[int, ...]:
        return tuple(math.prod(self.sizes[t] for t in run) for run in self.runs)

    def window(self, fixed: Sequence[int]) -> tuple[int, ...]:
        """Return the shape of the window at one part of each of the sub-dimensions ``fixed``."""
        return tuple(math.prod(self.sizes[t] for t in run if t not in fixed) for run in self.runs)

    def starts(self, parts: Mapping[int, IntArray]) -> IntArray:
        """Return where the window at parts ``parts[t]`` (int64 [..]) of sub-dimensions t begins. [.., axes]."""
        some = next(iter(parts.values()))
        out = np.zeros((*some.shape, len(self.runs)), np.int64)
        for a, run in enumerate(self.runs):
            stride = 1
            for t in reversed(run):
                if t in parts:
                    out[..., a] += parts[t] * stride
                stride *= self.sizes[t]
        return out


def by_dimension(problem: SubAxisProblem, local: Sequence[int]) -> LocalLayout:
    """Lay out the sub-dimensions ``local`` with an axis for each dimension that has any."""
    runs = groupby(local, lambda t: problem.sub_dims[t].dim)
    return LocalLayout(tuple(tuple(run) for _, run in runs), problem.sizes)


def isolated(problem: SubAxisProblem, local: Sequence[int], chosen: Sequence[int]) -> LocalLayout:
    """Return a layout of ``local`` in which each of ``chosen`` is a separate axis, and neighbours of one dimension
    share an axis.
    """
    out: list[tuple[int, ...]] = []
    for run in by_dimension(problem, local).runs:
        for t in run:
            if out and out[-1][-1] in run and t not in chosen and out[-1][-1] not in chosen:
                out[-1] += (t,)
            else:
                out.append((t,))
    return LocalLayout(tuple(out), problem.sizes)


def windowable(problem: SubAxisProblem, local: Sequence[int], fixed: Sequence[int]) -> LocalLayout:
    """Return a layout with few axes, in which one part of each of ``fixed`` is a window (a box) of the array.

    A dimension whose major sub-dimensions are ``fixed`` stays one axis.
    """
    out: list[tuple[int, ...]] = []
    for run in by_dimension(problem, local).runs:
        count = sum(t in fixed for t in run)
        if all(t in fixed for t in run[:count]):
            out.append(run)
        else:
            out += isolated(problem, run, fixed).runs
    return LocalLayout(tuple(out), problem.sizes)


def rearranged(
    before: tuple[int, ...], layout: LocalLayout, order: Sequence[int], after: tuple[int, ...], *, whole: bool = True
) -> list[Op]:
    """Build ops that view an array of shape ``before`` as ``layout``, transpose by ``order``, reshape to ``after``.

    Axes of size 1 take no part; an op that changes nothing is left out. With ``whole``, neighbours that stay neighbours
    are one axis.
    """
    shape = layout.shape
    real = [a for a in order if shape[a] > 1]
    blocks: list[list[int]] = []
    for a in real:
        if whole and blocks and not any(shape[b] > 1 for b in range(blocks[-1][-1] + 1, a)) and blocks[-1][-1] < a:
            blocks[-1].append(a)
        else:
            blocks.append([a])
    inner = sorted(blocks)
    if blocks == inner:
        return [] if before == after else [Reshape(after)]
    sizes = {block[0]: math.prod(shape[a] for a in block) for block in blocks}
    grid = tuple(sizes[block[0]] for block in inner)
    moved = tuple(sizes[block[0]] for block in blocks)
    out: list[Op] = [] if before == grid else [Reshape(grid)]
    out.append(Transpose(tuple(inner.index(block) for block in blocks)))
    return out if moved == after else [*out, Reshape(after)]


def restored(
    problem: SubAxisProblem, local: Sequence[int], coming: Sequence[int], shape: tuple[int, ...], tile: tuple[int, ...]
) -> list[Op]:
    """Build ops from an array of ``shape``, with ``coming`` in front of the rest of ``local``, to ``tile``."""
    out = isolated(problem, local, coming)
    stands = [*((t,) for t in coming), *(run for run in out.runs if run[0] not in coming)]
    return rearranged(shape, LocalLayout(tuple(stands), problem.sizes), [stands.index(run) for run in out.runs], tile)
