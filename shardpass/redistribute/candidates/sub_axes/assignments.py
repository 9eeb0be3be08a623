"""Restate both sides of a problem as sub-axes of the mesh that split sub-dimensions of the array.

A *sub-axis* is a prime factor of a mesh axis (``problem.sub_axes``), a *sub-dimension* a factor of a dimension of the
array; the sub-dimensions of a dimension go from major to minor. An *assignment* maps each sub-axis to the sub-dimension
that it splits: the device at coordinate c on the sub-axis has part c of the sub-dimension. A sub-axis that splits
none is REPLICATED. A sub-dimension that no sub-axis splits is *local*: every device has all of its parts. The local
array of a device is then the array at the device's part of each split sub-dimension; its shape is, for each dimension,
the product of the local sub-dimensions. In code ``m`` numbers a sub-axis and ``t`` a sub-dimension.

The sub-dimensions are the common refinement of both tilings. On each dimension the sizes of the source's sub-axes and
of the target's, both major to minor, must agree as far as both go: the tilings *nest*. Sizes 2, 3 against 2 nest;
2, 3 against 3, 2 *clash*, as no list of factors has both halves and thirds of a dimension as its leading part.

Example: f32[8, 8] on x=2, y=2, from [{x}, {}] to [{}, {x, y}]. Sub-axes: 0 is x, 1 is y. Sub-dimensions: 0 (2) and
1 (4) of dimension 0; 2 (2), 3 (2) and 4 (2) of dimension 1. The source is the assignment (0, REPLICATED), under which
1, 2, 3, 4 are local and tiles are 4x8; the target is (2, 3), under which 0, 1, 4 are local and tiles are 8x2.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

from shardpass.redistribute.problem.device_arrays import IntArray
from shardpass.redistribute.problem.problem import Problem
from shardpass.redistribute.problem.sub_axes import SubAxes
from shardpass.sharding import AxisRef, Sharding

REPLICATED = -1
Assignment = tuple[int, ...]  # for each sub-axis the sub-dimension that it splits, or REPLICATED


@dataclass(frozen=True, slots=True)
class SubDim:
    """A factor of ``size`` of the array's dimension ``dim``."""

    dim: int
    size: int


@dataclass(frozen=True, eq=False)
class Splits:
    """The sub-axes that split each dimension, major to minor, in the source and in the target."""

    sub_axes: SubAxes
    sides: tuple[list[list[int]], list[list[int]]]
    summed: tuple[int, ...]  # as in SubAxisProblem
    kept: tuple[int, ...]

    @classmethod
    def of(cls, problem: Problem, rank: int) -> Splits | None:
        """Read both shardings; None if the problem's mesh cannot express one of the shardings."""
        source, target = (_splitting(side.sharding, rank, problem) for side in (problem.source, problem.target))
        before, after = (_unreduced(side.sharding, problem) for side in (problem.source, problem.target))
        if source is None or target is None or before is None or after is None or not set(after) <= set(before):
            return None
        return cls(problem.sub_axes, (source, target), tuple(m for m in before if m not in after), tuple(after))

    def sizes(self, dim: int) -> tuple[list[int], list[int]]:
        """Return the sizes of the sub-axes that split ``dim``, in the source and in the target."""
        source, target = ([self.sub_axes.sizes[m] for m in side[dim]] for side in self.sides)
        return source, target

    def nest(self, dim: int) -> bool:
        """Return whether the sub-axis sizes that split ``dim`` in source and target agree, up to the end of the
        shorter list.
        """
        return all(a == b for a, b in zip(*self.sizes(dim), strict=False))


@dataclass(frozen=True, eq=False)
class SubAxisProblem:
    """A redistribution as assignments of sub-axes to sub-dimensions.

    Attributes:
        rank: of the array.
        sub_dims: numbered by dimension, then major to minor. The last of each dimension is never split.
        source, target: the assignments.
        summed: sub-axes along which the source has partial sums that are to be added. They split nothing in the source.
        kept: sub-axes along which partial sums stay. They split nothing.
    """

    rank: int
    sub_dims: tuple[SubDim, ...]
    sub_axes: SubAxes
    source: Assignment
    target: Assignment
    summed: tuple[int, ...] = ()
    kept: tuple[int, ...] = ()

    @classmethod
    def of(cls, problem: Problem, shape: tuple[int, ...]) -> SubAxisProblem | None:
        """Restate the problem for the padded ``shape``; None where tilings clash or no mesh fits."""
        splits = Splits.of(problem, len(shape))
        if splits is None or not all(splits.nest(i) for i in range(len(shape))):
            return None
        sub_dims: list[SubDim] = []
        assignments = [[REPLICATED] * len(problem.sub_axes.parts) for _ in range(2)]
        for i, n in enumerate(shape):
            longer = max(splits.sizes(i), key=len)
            for assignment, side in zip(assignments, splits.sides, strict=True):
                for place, m in enumerate(side[i]):
                    assignment[m] = len(sub_dims) + place
            sub_dims += [SubDim(i, size) for size in longer]
            sub_dims.append(SubDim(i, n // math.prod(longer)))
        source, target = (tuple(assignment) for assignment in assignments)
        return cls(len(shape), tuple(sub_dims), problem.sub_axes, source, target, splits.summed, splits.kept)

    @cached_property
    def sizes(self) -> tuple[int, ...]:
        """Return the sizes of all sub-dimensions."""
        return tuple(sub_dim.size for sub_dim in self.sub_dims)

    def local(self, assignment: Assignment) -> list[int]:
        """Return the local sub-dimensions, by dimension, then major to minor."""
        split = set(assignment)
        return [t for t in range(len(self.sub_dims)) if t not in split]

    def tile(self, assignment: Assignment) -> tuple[int, ...]:
        """Return the shape of the local array."""
        shape = [1] * self.rank
        for t in self.local(assignment):
            shape[self.sub_dims[t].dim] *= self.sizes[t]
        return tuple(shape)

    def key(self, assignment: Assignment) -> IntArray:
        """Return the number of each device's tile under ``assignment``. int64 [devices]."""
        splitting = sorted((t, m) for m, t in enumerate(assignment) if t != REPLICATED)
        return self.sub_axes.index((*self.kept, *(m for _, m in splitting)))

    def leading_dim(self, assignment: Assignment, chosen: Sequence[int]) -> int | None:
        """Return the dimension whose most major local sub-dimensions are ``chosen``, in order; or None."""
        dim = self.sub_dims[chosen[0]].dim
        local = [t for t in self.local(assignment) if self.sub_dims[t].dim == dim]
        return dim if local[: len(chosen)] == list(chosen) else None


def _splitting(sharding: Sharding, rank: int, problem: Problem) -> list[list[int]] | None:
    """Return the sub-axes that split each dimension; None if the problem's mesh cannot express the split."""
    if sharding.mesh is None or not any(sharding.dims):
        return [[] for _ in range(rank)]
    on_mesh = sharding.on(problem.mesh)
    return None if on_mesh is None else _numbers(on_mesh.dims, problem)


def _unreduced(sharding: Sharding, problem: Problem) -> list[int] | None:
    """Return the sub-axes over which values are partial sums; None if the problem's mesh cannot express them."""
    if not sharding.unreduced:
        return []
    on_mesh = sharding.on(problem.mesh)
    numbers = None if on_mesh is None else _numbers((on_mesh.unreduced,), problem)
    return numbers[0] if numbers else None


def _numbers(dims: Sequence[Sequence[AxisRef]], problem: Problem) -> list[list[int]] | None:
    """Return the numbers of the sub-axes in each entry of ``dims``; None if an axis cuts across a sub-axis."""
    numbers = [[_of_axis(ref, problem) for ref in axes] for axes in dims]
    if any(part is None for axes in numbers for part in axes):
        return None
    return [[m for part in axes for m in part or ()] for axes in numbers]


def _of_axis(ref: AxisRef, problem: Problem) -> list[int] | None:
    """Return the sub-axes of ``ref``; None if the axis cuts across a sub-axis or is not in the problem's mesh."""
    sizes, start = problem.sub_axes.sizes, 0
    for name, size in problem.mesh.axes:
        stop = start
        while size > 1:
            size //= sizes[stop]
            stop += 1
        if name == ref.name:
            return _part(ref, range(start, stop), sizes)
        start = stop
    return None


def _part(ref: AxisRef, axis: range, sizes: tuple[int, ...]) -> list[int] | None:
    """Return the sub-axes of ``axis`` that form ``ref``; the mesh may name parts of axes."""
    if ref.size is None:
        return list(axis)
    above, part = 1, []
    for m in axis:
        if ref.pre <= above < ref.pre * ref.size:
            part.append(m)
        above *= sizes[m]
    exact = math.prod(sizes[m] for m in part) == ref.size
    starts = math.prod(sizes[m] for m in axis if part and m < part[0]) == ref.pre
    return part if exact and starts else None
