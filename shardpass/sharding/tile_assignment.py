"""XLA's tile assignment: the grid of devices of a sharding over a mesh, and its text.

Source: HloSharding and TileAssignment of XLA (xla/hlo/ir/hlo_sharding.h, tile_assignment.h). The grid has one
dimension for each dimension of the array, and after these one for each subgroup, in the order maximal, manual,
unreduced, replicated; the last one holds the copies. It prints as an iota (V2) where the device order is one, else as
a list (V1), in which copies stand in ascending order.

Example: on the mesh x=4, y=2 the first of two dimensions split by y makes the grid [2,1,4]: two tiles of rows, one of
columns, four copies of each. Device 2x + y holds tile y, so the grid prints ``devices=[2,1,4]<=[4,2]T(1,0)
last_tile_dim_replicate``.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from shardpass.sharding import digits as dg
from shardpass.sharding.axes import Axes
from shardpass.sharding.digits import Digit, Ints
from shardpass.sharding.mesh import Mesh
from shardpass.sharding.notes import Kind
from shardpass.sharding.xla_text import iota_text, list_text, tiles_text

Part = tuple[Digit, ...]


@dataclass(frozen=True, slots=True)
class TileAssignment:
    """``parts[k]``: the digits of the mesh position that dimension k of the grid is. ``kinds``: of the subgroups."""

    mesh: Mesh
    parts: tuple[Part, ...]
    kinds: tuple[Kind, ...]

    @property
    def counts(self) -> tuple[int, ...]:
        """The dimensions of the grid."""
        return tuple(map(dg.total, self.parts))

    @property
    def devices(self) -> Ints:
        """The devices of the grid in row-major order, copies ascending. int64 [devices]."""
        listed: Ints = np.empty(self.mesh.size, dtype=np.int64)
        listed[dg.values(self._digits, self.mesh.size)] = self.mesh.order
        if self.kinds[-1:] == (Kind.REPLICATED,):
            listed = np.sort(listed.reshape(-1, dg.total(self.parts[-1])), axis=1).reshape(-1)
        return listed

    def __str__(self) -> str:
        return tiles_text(self.counts, self._devices_text(), self.kinds)

    @property
    def _digits(self) -> list[Digit]:
        return [digit for part in self.parts for digit in part]

    def _devices_text(self) -> str:
        if self.mesh.is_iota:
            return "<=" + iota_text(self._digits)
        listed = self.devices
        place = np.empty(self.mesh.size, dtype=np.int64)
        place[listed] = np.arange(self.mesh.size)
        form = dg.digits_of(place, self.mesh.size)
        return list_text(listed) if form is None else "<=" + iota_text(form)


def tile_assignment(
    mesh: Mesh, dims: Iterable[Axes], *, maximal: Axes, manual: Axes, unreduced: Axes
) -> TileAssignment:
    """Make the tile assignment in which ``dims`` split the array and other axes are subgroups; the rest are copies."""
    by_kind = ((Kind.MAXIMAL, maximal), (Kind.MANUAL, manual), (Kind.UNREDUCED, unreduced))
    subgroups = [(kind, axes) for kind, axes in by_kind if axes]
    parts = [tuple(map(mesh.digit, axes)) for axes in (*dims, *(axes for _, axes in subgroups))]
    kinds = [kind for kind, _ in subgroups]
    copies = dg.missing([digit for part in parts for digit in part], mesh.size)
    if copies:
        parts.append(copies)
        kinds.append(Kind.REPLICATED)
    return TileAssignment(mesh, tuple(parts), tuple(kinds))
