"""Which tile of an array each device holds, as index arrays.

Everything below the planners' entrance speaks of tilings and knows nothing of sharding text: a tiling is a tile
count for each dimension and, for each physical device, the index of its tile. A base offset (section 4.1 of
Rink et al.) is the index times the tile's shape. Devices with the same index are *replicas*; they are told apart by
their place in the mesh.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from shardpass.redistribute.candidates.rink_search import prime_factors
from shardpass.redistribute.program.ops import IntArray
from shardpass.sharding import Mesh, Sharding


@dataclass(frozen=True, eq=False)
class Tiling:
    """``counts[i]`` tiles along dimension i; device d holds the tile ``index[d]`` (int64 [devices, rank])."""

    counts: tuple[int, ...]
    index: IntArray

    @cached_property
    def key(self) -> IntArray:
        """The tile of each device as one number, row-major. int64 [devices]."""
        return ravel(self.index, self.counts)

    @cached_property
    def replica(self) -> IntArray:
        """Each device's number among the devices that hold the same tile, by device id. int64 [devices]."""
        return numbered(self.key)

    @property
    def replicas(self) -> int:
        return len(self.index) // math.prod(self.counts)

    def same(self, other: Tiling) -> bool:
        return self.counts == other.counts and np.array_equal(self.index, other.index)

    def split(self, dim: int, factor: int, part: IntArray) -> Tiling:
        """Each tile cut in ``factor`` along ``dim``; device d keeps ``part[d]``."""
        index = self.index.copy()
        index[:, dim] = index[:, dim] * factor + part
        return Tiling(replaced(self.counts, dim, self.counts[dim] * factor), index)

    def joined(self, dim: int, factor: int) -> Tiling:
        """Each ``factor`` neighbours along ``dim`` made one tile."""
        index = self.index.copy()
        index[:, dim] //= factor
        return Tiling(replaced(self.counts, dim, self.counts[dim] // factor), index)

    def groups(self, dim: int, factor: int) -> IntArray:
        """Groups of ``factor`` devices whose tiles are neighbours along ``dim``, in order. int64 [groups, factor]."""
        return grouped(self.joined(dim, factor).key, self.index[:, dim] % factor, factor, self.replica)


def grouped(key: IntArray, position: IntArray, size: int, replica: IntArray) -> IntArray:
    """Groups of devices with the same ``key`` and ``replica``, ordered by ``position``. int64 [groups, size]."""
    groups = np.lexsort((position, replica, key)).reshape(-1, size)
    return groups[np.argsort(groups.min(axis=1), kind="stable")]


def row_of(groups: IntArray) -> IntArray:
    """The group of each device. int64 [devices]."""
    out = np.empty(groups.size, np.int64)
    out[groups] = np.arange(len(groups))[:, None]
    return out


def travels(source_of: IntArray) -> IntArray:
    """The pairs (from, to) of rounds ``source_of`` [rounds, devices] that go from one device to another."""
    here = np.arange(source_of.shape[1])
    pairs: IntArray = np.stack([source_of, np.broadcast_to(here, source_of.shape)], axis=-1)
    moving: IntArray = pairs[source_of != here]
    return moving


def ravel(index: IntArray, counts: tuple[int, ...]) -> IntArray:
    """``numpy.ravel_multi_index`` that knows rank 0. int64 [devices]."""
    key = np.zeros(len(index), np.int64)
    for i, count in enumerate(counts):
        key = key * count + index[:, i]
    return key


def numbered(key: IntArray) -> IntArray:
    """For each place, how many places before it hold the same key."""
    order = np.argsort(key, kind="stable")
    run = key[order]
    first = np.concatenate(([True], run[1:] != run[:-1]))
    starts = np.flatnonzero(first)
    out = np.empty(len(key), np.int64)
    out[order] = np.arange(len(key)) - np.repeat(starts, np.diff(np.append(starts, len(key))))
    return out


def matched(held: IntArray, wanted: IntArray) -> IntArray:
    """A permutation ``source_of`` with ``held[source_of[d]] == wanted[d]`` that moves as few as it can (lemma 5.1).

    Both name each tile equally often.
    """
    source_of = np.arange(len(held), dtype=np.int64)
    givers = np.flatnonzero(held != wanted)
    order_held = givers[np.argsort(held[givers], kind="stable")]
    order_wanted = givers[np.argsort(wanted[givers], kind="stable")]
    source_of[order_wanted] = order_held
    return source_of


def replaced(counts: tuple[int, ...], dim: int, value: int) -> tuple[int, ...]:
    return (*counts[:dim], value, *counts[dim + 1 :])


def tiling_of(sharding: Sharding, rank: int, devices: int) -> Tiling:
    """The tiling that a tiled or replicated sharding means for arrays of this rank on ``devices`` devices."""
    counts = sharding.tile_counts(rank)
    # an array of one element a tile has its tile indices as base offsets
    return Tiling(counts, np.asarray(sharding.tile_offsets(counts, devices), np.int64))


@dataclass(frozen=True, slots=True)
class MeshDigit:
    """One prime factor of a mesh axis: the part ``axis:(pre)size`` of an axis of ``whole`` devices."""

    axis: str
    whole: int
    pre: int
    size: int


_PART = re.compile(r"(?P<axis>.*):\((?P<pre>\d+)\)\d+", re.DOTALL)


@dataclass(frozen=True, eq=False)
class AxisNames:
    """A mesh in prime digits, in mesh order, and where each device stands on them."""

    digits: tuple[MeshDigit, ...]
    coordinates: IntArray  # [devices, digits]

    @classmethod
    def of(cls, mesh: Mesh) -> AxisNames:
        parts = [(m["axis"], int(m["pre"])) if (m := _PART.fullmatch(name)) else (name, 1) for name, _ in mesh.axes]
        whole: Counter[str] = Counter()
        for (axis, _), (_, size) in zip(parts, mesh.axes, strict=True):
            whole[axis] = (whole[axis] or 1) * size
        digits = []
        for (axis, pre), (_, size) in zip(parts, mesh.axes, strict=True):
            for p in reversed(prime_factors(size)):
                digits.append(MeshDigit(axis, whole[axis], pre, p))
                pre *= p
        shape = tuple(digit.size for digit in digits)
        table = np.empty((mesh.size, len(shape)), np.int64)
        if shape:
            table[mesh.order] = np.stack(np.unravel_index(np.arange(mesh.size), shape), axis=1)
        return cls(tuple(digits), table)

    def along(self, groups: IntArray) -> tuple[str, ...]:
        """The axes, or sub-axes ``x:(pre)size``, on which the members of some group differ."""
        rows = self.coordinates[groups]
        varies = (rows != rows[:, :1]).any(axis=(0, 1))
        return self.names([k for k, used in enumerate(varies) if used])

    def names(self, used: Iterable[int]) -> tuple[str, ...]:
        """The digits numbered ``used`` as axes; neighbouring parts of an axis are one."""
        found: list[MeshDigit] = []
        for k in sorted(used):
            digit = self.digits[k]
            last = found[-1] if found else None
            if last and last.axis == digit.axis and last.pre * last.size == digit.pre:
                found[-1] = replace(last, size=last.size * digit.size)
            else:
                found.append(digit)
        return tuple(d.axis if d.size == d.whole else f"{d.axis}:({d.pre}){d.size}" for d in found)
