"""The simulator's ``State``: how the elements of local arrays lie in the whole array.

Every device's local array has one shape, and its elements lie in the whole array by one pattern: ``axes``, one list of
digits for each axis (``digits``). The pattern starts at a different element on each device: ``base``.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from shardpass.redistribute.problem.device_arrays import IntArray
from shardpass.redistribute.program.digits import Axis, Digit, merged


@dataclass(frozen=True, slots=True, eq=False)
class State:
    """The local arrays of all devices: the index in the whole array of each local element."""

    axes: tuple[Axis, ...]
    base: IntArray  # [devices, rank]
    real: NDArray[np.bool_]  # [devices]: whether the device's array means anything
    weight: NDArray[np.uint64]  # [devices]: the sum of the ``fingerprints`` of the summands that it has

    @property
    def shape(self) -> tuple[int, ...]:
        return tuple(math.prod(digit.size for digit in axis) for axis in self.axes)

    @classmethod
    def tile(
        cls,
        shape: tuple[int, ...],
        base: IntArray,
        real: NDArray[np.bool_] | None = None,
        weight: NDArray[np.uint64] | None = None,
    ) -> State:
        """Make contiguous tiles of ``shape`` that start at ``base``; of whole values unless ``weight`` is given."""
        real = np.ones(len(base), bool) if real is None else real
        weight = np.zeros(len(base), np.uint64) if weight is None else weight
        return cls(tuple(merged([Digit(n, i, 1)]) for i, n in enumerate(shape)), base, real, weight)


@lru_cache(maxsize=64)
def fingerprints(count: int) -> NDArray[np.uint64]:
    """Return a random number for each summand; sums of them, modulo 2**64, identify sets of summands.

    A wrong set passes for a right one with probability 2**-64.
    """
    marks = np.random.default_rng(0x5DF).integers(1 << 63, size=count, dtype=np.uint64) * np.uint64(2) + np.uint64(1)
    marks.flags.writeable = False
    return marks
