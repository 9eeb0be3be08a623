"""The tile of an array that each device has, as index arrays.

Everything below the planners' entrance speaks of tilings and knows nothing of sharding text: a tiling is a tile
count for each dimension and, for each physical device, the index of its tile. A base offset (section 4.1 of
Rink et al.) is the index times the tile's shape. Devices with the same index are *replicas*, distinguished by their
place in the mesh.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property, lru_cache

import numpy as np

from shardpass.redistribute.problem.device_arrays import IntArray, count_before, grouped, ravel, replaced
from shardpass.sharding import Sharding


@dataclass(frozen=True, eq=False)
class Tiling:
    """``counts[i]`` tiles along dimension i; device d has the tile ``index[d]`` (int64 [devices, rank])."""

    counts: tuple[int, ...]
    index: IntArray

    @cached_property
    def key(self) -> IntArray:
        """Return the tile of each device as one number, row-major. int64 [devices]."""
        return ravel(self.index, self.counts)

    @cached_property
    def replica(self) -> IntArray:
        """Return each device's number among the devices that have the same tile, by device id. int64 [devices]."""
        return count_before(self.key)

    @property
    def replicas(self) -> int:
        return len(self.index) // math.prod(self.counts)

    def same(self, other: Tiling) -> bool:
        return self.counts == other.counts and np.array_equal(self.index, other.index)

    def split(self, dim: int, factor: int, part: IntArray) -> Tiling:
        """Cut each tile in ``factor`` along ``dim``; device d keeps ``part[d]``."""
        index = self.index.copy()
        index[:, dim] = index[:, dim] * factor + part
        return Tiling(replaced(self.counts, dim, self.counts[dim] * factor), index)

    def joined(self, dim: int, factor: int) -> Tiling:
        """Merge every ``factor`` neighbours along ``dim`` into one tile."""
        index = self.index.copy()
        index[:, dim] //= factor
        return Tiling(replaced(self.counts, dim, self.counts[dim] // factor), index)

    def groups(self, dim: int, factor: int) -> IntArray:
        """Group ``factor`` devices whose tiles are neighbours along ``dim``, in order. int64 [groups, factor]."""
        return grouped(self.joined(dim, factor).key, self.index[:, dim] % factor, factor, self.replica)


@lru_cache(maxsize=64)
def tiling_of(sharding: Sharding, rank: int, devices: int) -> Tiling:
    """Return the tiling of a tiled or replicated sharding for arrays of this rank on ``devices`` devices."""
    counts = sharding.tile_counts(rank)
    # an array of one element a tile has its tile indices as base offsets
    return Tiling(counts, np.asarray(sharding.tile_offsets(counts, devices), np.int64))
