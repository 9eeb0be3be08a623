"""A redistribution problem as index arrays, the input of every candidate.

Problem: an array of a given shape lies on N devices under one sharding and is needed under another. Source: Rink et
al., sections 3 and 4 (base offset maps); the lower bound is of this package.

State: for both sides a ``Distribution``: which tile each device has, as index arrays with a row for each device. The
text of a sharding is read in ``checks`` and nowhere else in the package.

Invariants: tiles of one side have one shape, ceil(size / count) in each dimension, and tile i starts at i times that;
elements past the array's end are arbitrary.

Facts that decide which candidates apply:

1. *Lower bound*: a device must receive the elements of its target tile that its source tile lacks. 8 rows from [{x}] to
   replicated, x=4: 6 of 8 rows.
2. *Borders nest*: both sides are tilings of one padded size. In a dimension that both split, the padded sizes must
   agree: 10 rows in 4 tiles (of 3) and in 6 (of 2) are both padded to 12. In 2 tiles (of 5: 10) and in 4 (of 3: 12)
   the borders *cross*. A dimension that one side leaves whole is padded as the other side needs.
3. *Partial sums*: under an unreduced sharding each device has one summand of its tile, with a number. The target may
   keep them apart, all or along some axes.

O(devices * rank) for each array, computed when first asked for.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from shardpass.element_types import ElementType
from shardpass.redistribute.problem.boxes import Boxes
from shardpass.redistribute.problem.device_arrays import IntArray
from shardpass.redistribute.problem.sub_axes import SubAxes, sub_axes_of
from shardpass.redistribute.problem.tiling import Tiling
from shardpass.sharding import Mesh, Sharding, common_mesh


@dataclass(frozen=True, eq=False)
class Distribution:
    """The source or the target: which device has which tile.

    ``only`` is the one device that has anything under a maximal sharding. Its tiling is then that of
    ``{replicated}``, as every device has a local array of the whole shape.
    """

    sharding: Sharding
    tiling: Tiling
    tile: tuple[int, ...]
    only: int | None

    @cached_property
    def base(self) -> IntArray:
        """Return the base offset map, not cut off at the array's end. int64 [devices, rank]."""
        return self.tiling.index * np.array(self.tile, np.int64)

    @cached_property
    def real(self) -> NDArray[np.bool_]:
        """Return the devices that have any element. [devices]"""
        devices = len(self.tiling.index)
        return np.ones(devices, bool) if self.only is None else np.arange(devices) == self.only

    @cached_property
    def summand(self) -> IntArray | None:
        """Return the number of each device's partial sum; None if values are whole. int64 [devices]."""
        return self.sharding.number(self.sharding.unreduced) if self.sharding.unreduced else None

    def boxes(self, shape: tuple[int, ...]) -> Boxes:
        return Boxes.of(shape, self.tile, self.base, self.real)


@dataclass(frozen=True, eq=False)
class Problem:
    """An array of ``shape`` that is to go from ``source`` to ``target`` on ``devices`` devices."""

    shape: tuple[int, ...]
    element: ElementType
    source: Distribution
    target: Distribution
    devices: int

    @cached_property
    def sub_axes(self) -> SubAxes:
        return sub_axes_of(self.mesh)

    @cached_property
    def mesh(self) -> Mesh:
        """Return a mesh for axis names: the common mesh, or the source's, or the target's."""
        shardings = [s for s in (self.source.sharding, self.target.sharding) if s.mesh is not None]
        if not shardings:
            return Mesh((("devices", self.devices),))
        return common_mesh(shardings) or shardings[0].mesh or Mesh((("devices", self.devices),))

    @property
    def is_nothing(self) -> bool:
        """Whether every device already has its target tile."""
        if self.source.summand is not None or self.target.summand is not None:
            return self.source.sharding == self.target.sharding
        same_device = self.source.only is None or self.source.only == self.target.only
        return same_device and self.source.tile == self.target.tile and self.source.tiling.same(self.target.tiling)

    @cached_property
    def lower_bound_bytes(self) -> int:
        """Count the bytes that the device that lacks most must receive.

        A device has no element of a sum that is still partial: each takes at least one summand from another device.
        """
        source, target = self.source.boxes(self.shape), self.target.boxes(self.shape)
        missing = target.volume
        if self.source.summand is None or self.is_kept:
            missing = missing - source.common(target).volume
        return self.element.bytes(int(missing.max(initial=0)))

    @property
    def reduction(self) -> str:
        """Return the op that joins the source's partial values: add, max or min."""
        return {"sum": "add"}.get(self.source.sharding.reduction, self.source.sharding.reduction)

    @property
    def is_kept(self) -> bool:
        """Whether the target keeps all partial sums of the source."""
        after = self.target.summand
        return self.sums > 1 and after is not None and int(after.max()) + 1 == self.sums

    @property
    def sums(self) -> int:
        """Count the partial sums that the source has of each element; 1 where values are whole."""
        return 1 if self.source.summand is None else int(self.source.summand.max()) + 1

    def aligned(self) -> tuple[int, ...] | None:
        """Return the padded shape that both tilings divide into their own tiles; None if their borders cross.

        A dimension that one side does not split may be padded to the other's size.
        """
        shape = []
        for n, sizes in zip(self.shape, self._padded_sizes(), strict=True):
            if len(sizes) > 1:
                return None
            shape.append(sizes.pop() if sizes else n)
        return tuple(shape)

    def aligned_dims(self) -> tuple[bool, ...]:
        """Return whether the tile borders nest, for each dimension."""
        return tuple(len(sizes) < 2 for sizes in self._padded_sizes())

    def _padded_sizes(self) -> list[set[int]]:
        """Return the padded sizes of each dimension on the sides that split the dimension."""
        sides = (self.source, self.target)
        return [
            {side.tiling.counts[i] * side.tile[i] for side in sides if side.tiling.counts[i] > 1}
            for i in range(len(self.shape))
        ]

    def __str__(self) -> str:
        extent = "x".join(map(str, (*self.shape, self.element)))
        return f"{extent} from {self.source.sharding} to {self.target.sharding}"
