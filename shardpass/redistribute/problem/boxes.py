"""The part of the array on each device as a box: its tile without the padding past the end of the array."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from shardpass.redistribute.problem.device_arrays import IntArray


@dataclass(frozen=True, slots=True, eq=False)
class Boxes:
    """The elements of the array on each device: ``start <= index < stop`` (int64 [devices, rank]), where ``real``."""

    start: IntArray
    stop: IntArray
    real: NDArray[np.bool_]  # [devices]

    @classmethod
    def of(cls, shape: tuple[int, ...], tile: tuple[int, ...], base: IntArray, real: NDArray[np.bool_]) -> Boxes:
        """Make boxes from tiles of the same shape, without the part past the end of the array."""
        whole = np.array(shape, np.int64)
        return cls(np.minimum(base, whole), np.minimum(base + np.array(tile, np.int64), whole), real)

    @property
    def volume(self) -> IntArray:
        size: IntArray = np.prod(np.maximum(self.stop - self.start, 0), axis=1, dtype=np.int64)
        return size * self.real

    def common(self, other: Boxes) -> Boxes:
        start, stop = np.maximum(self.start, other.start), np.minimum(self.stop, other.stop)
        return Boxes(start, stop, self.real & other.real)
