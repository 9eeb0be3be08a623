"""The mesh cut into prime sub-axes.

A *sub-axis* is a factor of a mesh axis, written ``axis:(pre)size`` as in Shardy: ``pre`` is the product of the factors
before it, major to minor. Every axis is cut into its prime factors, so that any sub-axis that a sharding names is a run
of them. The axis x=12 is cut into x:(1)3, x:(3)2 and x:(6)2; a device at 7 on x has the coordinates 1, 1 and 1 on them.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, replace

import numpy as np

from shardpass.redistribute.problem.device_arrays import IntArray
from shardpass.redistribute.problem.primes import prime_factors
from shardpass.sharding import Mesh


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
