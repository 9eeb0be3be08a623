"""Tilings in digits: both sides of a problem over one set of factors.

A *tensor digit* is a factor of a dimension, major to minor; a *mesh digit* a prime factor of a mesh axis. A
*state* says for each mesh digit which tensor digit it holds (FREE: none; the devices along it are replicas). A
tensor digit that no mesh digit holds is *local*. Every device's local array is then the tensor with each held
digit fixed at the device's coordinate, and its shape the product of the local digits of each dimension, in
order.

The tensor digits are the common refinement of the two tilings: the sizes of source's axes on a dimension and those of
target's, both major to minor, must agree as far as both go. ``DigitProblem.of`` gives None where they do not (2 then 3
against 3 then 2) or where the two have no common mesh.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import groupby

import numpy as np

from shardpass.redistribute.problem.device_arrays import IntArray, grouped
from shardpass.redistribute.problem.problem import Problem
from shardpass.redistribute.problem.sub_axes import AxisNames
from shardpass.redistribute.program.ops import Op, Reshape, Transpose
from shardpass.sharding import AxisRef, Sharding

FREE = -1
Assignment = tuple[int, ...]  # for each mesh digit, the tensor digit that it holds


@dataclass(frozen=True, slots=True)
class TensorDigit:
    dim: int
    size: int


@dataclass(frozen=True, eq=False)
class HeldDigits:
    """Which mesh digits split each dimension, major to minor, in the source and in the target."""

    names: AxisNames
    sides: tuple[list[list[int]], list[list[int]]]
    partial: tuple[int, ...]  # as in DigitProblem
    kept: tuple[int, ...]

    @classmethod
    def of(cls, problem: Problem, rank: int) -> HeldDigits | None:
        """None where the mesh cannot say one of the shardings."""
        source, target = (_axes(side.sharding, rank, problem) for side in (problem.source, problem.target))
        before, after = (_summands(side.sharding, problem) for side in (problem.source, problem.target))
        if source is None or target is None or before is None or after is None or not set(after) <= set(before):
            return None
        return cls(problem.names, (source, target), tuple(m for m in before if m not in after), tuple(after))

    def sizes(self, dim: int) -> tuple[list[int], list[int]]:
        """The sizes of the digits of ``dim``, in the source and in the target."""
        source, target = ([self.names.digits[m].size for m in side[dim]] for side in self.sides)
        return source, target

    def nests(self, dim: int) -> bool:
        """Whether the sizes of source and target agree as far as both go."""
        return all(a == b for a, b in zip(*self.sizes(dim), strict=False))


@dataclass(frozen=True, eq=False)
class DigitProblem:
    """``digits`` are numbered by dimension, then major to minor; the last of each dimension is never held."""

    rank: int
    digits: tuple[TensorDigit, ...]
    names: AxisNames
    source: Assignment
    target: Assignment
    partial: tuple[int, ...] = ()  # free mesh digits along which the source has partial sums that are to be added
    kept: tuple[int, ...] = ()  # free mesh digits along which partial sums stay

    @classmethod
    def of(cls, problem: Problem, shape: tuple[int, ...]) -> DigitProblem | None:
        """``shape`` is the padded shape that both tilings divide."""
        held = HeldDigits.of(problem, len(shape))
        if held is None or not all(held.nests(i) for i in range(len(shape))):
            return None
        digits: list[TensorDigit] = []
        states = [[FREE] * len(problem.names.digits) for _ in range(2)]
        for i, n in enumerate(shape):
            longer = max(held.sizes(i), key=len)
            for state, axes in zip(states, held.sides, strict=True):
                for place, m in enumerate(axes[i]):
                    state[m] = len(digits) + place
            digits += [TensorDigit(i, size) for size in longer]
            digits.append(TensorDigit(i, n // math.prod(longer)))
        source, target = (tuple(state) for state in states)
        return cls(len(shape), tuple(digits), problem.names, source, target, held.partial, held.kept)

    # ---------------------------------------------------------------- states

    def local(self, state: Assignment) -> list[int]:
        """The local tensor digits, by dimension, then major to minor."""
        held = set(state)
        return [t for t in range(len(self.digits)) if t not in held]

    def tile(self, state: Assignment) -> tuple[int, ...]:
        """The shape of the local array."""
        shape = [1] * self.rank
        for t in self.local(state):
            shape[self.digits[t].dim] *= self.digits[t].size
        return tuple(shape)

    def key(self, state: Assignment) -> IntArray:
        """What each device holds, as one number. int64 [devices]."""
        key = self.number(self.kept)
        for _, m in sorted((t, m) for m, t in enumerate(state) if t != FREE):
            key = key * self.names.digits[m].size + self.names.coordinates[:, m]
        return key

    def number(self, mesh_digits: Sequence[int]) -> IntArray:
        """The coordinate of each device on ``mesh_digits``, major to minor, as one number."""
        out = np.zeros(len(self.names.coordinates), np.int64)
        for m in mesh_digits:
            out = out * self.names.digits[m].size + self.names.coordinates[:, m]
        return out

    def groups(self, mesh_digits: Sequence[int]) -> IntArray:
        """Groups of devices that differ on ``mesh_digits`` alone, in order of ``number``. int64 [groups, size]."""
        rest = self.number([m for m in range(len(self.names.digits)) if m not in mesh_digits])
        return grouped(rest, self.number(mesh_digits), self.size(mesh_digits), np.zeros_like(rest))

    def size(self, mesh_digits: Sequence[int]) -> int:
        """How many devices differ on ``mesh_digits`` alone."""
        return math.prod(self.names.digits[m].size for m in mesh_digits)

    @cached_property
    def sizes(self) -> tuple[int, ...]:
        return tuple(digit.size for digit in self.digits)


def _axes(sharding: Sharding, rank: int, problem: Problem) -> list[list[int]] | None:
    """For each dimension the mesh digits that split it; None where the problem's mesh cannot say them."""
    if sharding.mesh is None or not any(sharding.dims):
        return [[] for _ in range(rank)]
    said = sharding.on(problem.mesh)
    if said is None:
        return None
    return _all_digits(said.dims, problem)


def _summands(sharding: Sharding, problem: Problem) -> list[int] | None:
    """The mesh digits of the unreduced axes."""
    if not sharding.unreduced:
        return []
    said = sharding.on(problem.mesh)
    found = None if said is None else _all_digits((said.unreduced,), problem)
    return found[0] if found else None


def _all_digits(dims: Sequence[Sequence[AxisRef]], problem: Problem) -> list[list[int]] | None:
    """The mesh digits of each entry of ``dims``; None where an axis cuts across one."""
    found = [[_digits(ref, problem) for ref in axes] for axes in dims]
    if any(digits is None for axes in found for digits in axes):
        return None
    return [[k for digits in axes for k in digits or ()] for axes in found]


def _digits(ref: AxisRef, problem: Problem) -> list[int] | None:
    """The mesh digits of an axis, or sub-axis; None where it cuts across one, or is none of the problem's mesh."""
    start = 0
    for name, size in problem.mesh.axes:
        count = 0
        while size > 1:
            size //= problem.names.digits[start + count].size
            count += 1
        if name == ref.name:
            return _part(ref, range(start, start + count), problem)
        start += count
    return None


def _part(ref: AxisRef, digits: range, problem: Problem) -> list[int] | None:
    """Those of an axis's ``digits`` that make up ``ref``: sub-axes stand on a mesh that is no common one."""
    if ref.size is None:
        return list(digits)
    above, part = 1, []
    for digit in digits:
        size = problem.names.digits[digit].size
        if ref.pre <= above < ref.pre * ref.size:
            part.append(digit)
        above *= size
    exact = math.prod(problem.names.digits[d].size for d in part) == ref.size
    starts = math.prod(problem.names.digits[d].size for d in digits if part and d < part[0]) == ref.pre
    return part if exact and starts else None


# -------------------------------------------------------------------- local layout


@dataclass(frozen=True, slots=True)
class Axes:
    """A local array by runs of tensor digits: each axis holds some, major to minor."""

    runs: tuple[tuple[int, ...], ...]
    sizes: tuple[int, ...]  # of all tensor digits

    @property
    def shape(self) -> tuple[int, ...]:
        return tuple(math.prod(self.sizes[t] for t in run) for run in self.runs)

    def window(self, alone: Sequence[int]) -> tuple[int, ...]:
        """The shape at one place of the digits ``alone``."""
        return tuple(math.prod(self.sizes[t] for t in run if t not in alone) for run in self.runs)

    def starts(self, parts: Mapping[int, IntArray]) -> IntArray:
        """Where the window begins, with digit t at ``parts[t]``; each int64 [..]. Result [.., axes]."""
        some = next(iter(parts.values()))
        out = np.zeros((*some.shape, len(self.runs)), np.int64)
        for a, run in enumerate(self.runs):
            stride = 1
            for t in reversed(run):
                if t in parts:
                    out[..., a] += parts[t] * stride
                stride *= self.sizes[t]
        return out


def dims(problem: DigitProblem, local: Sequence[int]) -> Axes:
    """The local digits, an axis for each dimension that has any."""
    return Axes(tuple(tuple(run) for _, run in groupby(local, lambda t: problem.digits[t].dim)), problem.sizes)


def apart(problem: DigitProblem, local: Sequence[int], alone: Sequence[int]) -> Axes:
    """The local digits in order, each of ``alone`` on an axis of its own, the others in the longest runs."""
    out: list[tuple[int, ...]] = []
    for run in dims(problem, local).runs:
        for t in run:
            if out and out[-1][-1] in run and t not in alone and out[-1][-1] not in alone:
                out[-1] += (t,)
            else:
                out.append((t,))
    return Axes(tuple(out), problem.sizes)


def windowed(problem: DigitProblem, local: Sequence[int], alone: Sequence[int]) -> Axes:
    """As few axes as let a window fix ``alone``: a dimension stays whole where they are its most major digits."""
    out: list[tuple[int, ...]] = []
    for run in dims(problem, local).runs:
        count = sum(t in alone for t in run)
        if all(t in alone for t in run[:count]):
            out.append(run)
        else:
            out += apart(problem, run, alone).runs
    return Axes(tuple(out), problem.sizes)


def arranged(before: tuple[int, ...], axes: Axes, order: Sequence[int], after: tuple[int, ...]) -> list[Op]:
    """Ops that see an array of shape ``before`` as ``axes``, put these in ``order``, and see the result as ``after``.

    Axes of size 1 take no part, neighbours that stay neighbours are one; what changes nothing is left out.
    """
    shape = axes.shape
    real = [a for a in order if shape[a] > 1]
    blocks: list[list[int]] = []
    for a in real:
        if blocks and not any(shape[b] > 1 for b in range(blocks[-1][-1] + 1, a)) and blocks[-1][-1] < a:
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


__all__ = [
    "FREE",
    "Assignment",
    "Axes",
    "DigitProblem",
    "HeldDigits",
    "TensorDigit",
    "apart",
    "arranged",
    "dims",
    "windowed",
]
