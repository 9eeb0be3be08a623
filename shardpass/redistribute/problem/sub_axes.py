"""The mesh cut into prime sub-axes.

A *sub-axis* is a factor of a mesh axis, written ``axis:(pre)size`` as in Shardy: ``pre`` is the product of the factors
before it, major to minor. Every axis is cut into its prime factors, so that any sub-axis that a sharding names is a run
of them. The axis x=12 is cut into x:(1)3, x:(3)2 and x:(6)2; a device at 7 on x has the coordinates 1, 1 and 1 on them.

One ``SubAxes`` serves all problems on a mesh; the indices and replica groups along sub-axes, arrays of all devices, are
computed once for each choice of sub-axes.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache

import numpy as np

from shardpass.redistribute.problem.device_arrays import IntArray, frozen, grouped
from shardpass.sharding import AxisRef, Mesh
from shardpass.sharding.primes import prime_factors

CACHED_MESHES = 64
CACHED_CHOICES = 256  # of sub-axes, with an array of all devices for each


@dataclass(frozen=True, slots=True)
class SubAxis:
    """The part ``axis:(pre)size`` of an axis of ``whole`` devices; ``size`` is prime."""

    axis: str
    whole: int
    pre: int
    size: int


_PART = re.compile(r"(?P<axis>.*):\((?P<pre>\d+)\)\d+", re.DOTALL)


@dataclass(frozen=True, eq=False)
class SubAxes:
    """All prime sub-axes of a mesh, in mesh order and numbered so, and the coordinates of each device."""

    parts: tuple[SubAxis, ...]
    coordinates: IntArray  # [devices, sub-axes]
    borders: tuple[int, ...] = ()  # the strides of the mesh's axes in device ids; none of a mesh in another order

    @cached_property
    def sizes(self) -> tuple[int, ...]:
        return tuple(part.size for part in self.parts)

    @property
    def devices(self) -> int:
        return len(self.coordinates)

    def count(self, chosen: Iterable[int]) -> int:
        """Count the devices that differ on the sub-axes ``chosen`` alone."""
        return math.prod(self.sizes[m] for m in chosen)

    def index(self, chosen: Iterable[int]) -> IntArray:
        """Return each device's coordinates on ``chosen``, major to minor, as one number. int64 [devices]."""
        return _index(self, tuple(chosen))

    def groups(self, chosen: Iterable[int]) -> IntArray:
        """Group the devices that differ on ``chosen`` alone, in the order of ``index``. int64 [groups, size]."""
        return _groups(self, tuple(chosen))

    def along(self, groups: IntArray) -> tuple[str, ...]:
        """Name the axes and sub-axes on which the members of some group differ."""
        rows = self.coordinates[groups]
        varies = (rows != rows[:, :1]).any(axis=(0, 1))
        return self.names([m for m, used in enumerate(varies) if used])

    def names(self, chosen: Iterable[int]) -> tuple[str, ...]:
        """Name the sub-axes ``chosen``; adjacent parts of an axis are merged."""
        runs: list[SubAxis] = []
        for m in sorted(chosen):
            part = self.parts[m]
            last = runs[-1] if runs else None
            if last and last.axis == part.axis and last.pre * last.size == part.pre:
                runs[-1] = replace(last, size=last.size * part.size)
            else:
                runs.append(part)
        refs = (AxisRef(run.axis) if run.size == run.whole else AxisRef(run.axis, run.pre, run.size) for run in runs)
        return tuple(ref.bare for ref in refs)


@lru_cache(maxsize=CACHED_CHOICES)
def _index(sub_axes: SubAxes, chosen: tuple[int, ...]) -> IntArray:
    out = np.zeros(sub_axes.devices, np.int64)
    for m in chosen:
        out = out * sub_axes.sizes[m] + sub_axes.coordinates[:, m]
    return frozen(out)


@lru_cache(maxsize=CACHED_CHOICES)
def _groups(sub_axes: SubAxes, chosen: tuple[int, ...]) -> IntArray:
    rest = sub_axes.index(m for m in range(len(sub_axes.parts)) if m not in chosen)
    return frozen(grouped(rest, sub_axes.index(chosen), sub_axes.count(chosen), np.zeros_like(rest)))


@lru_cache(maxsize=CACHED_MESHES)
def sub_axes_of(mesh: Mesh) -> SubAxes:
    """Return the prime sub-axes of ``mesh``. An axis named ``x:(2)4``, of a common mesh, is that part of x."""
    named = [(m["axis"], int(m["pre"])) if (m := _PART.fullmatch(name)) else (name, 1) for name, _ in mesh.axes]
    whole: Counter[str] = Counter()
    for (axis, _), (_, size) in zip(named, mesh.axes, strict=True):
        whole[axis] = (whole[axis] or 1) * size
    parts = []
    for (axis, pre), (_, size) in zip(named, mesh.axes, strict=True):
        for prime in reversed(prime_factors(size)):
            parts.append(SubAxis(axis, whole[axis], pre, prime))
            pre *= prime
    shape = tuple(part.size for part in parts)
    coordinates = np.empty((mesh.size, len(shape)), np.int64)
    if shape:
        coordinates[mesh.order] = np.stack(np.unravel_index(np.arange(mesh.size), shape), axis=1)
    borders = tuple(mesh.strides.values()) if mesh.is_iota else ()
    return SubAxes(tuple(parts), frozen(coordinates), borders)
