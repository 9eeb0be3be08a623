"""Price the movement of arrays: the bytes that one device receives, by the default planner of redistributions.

A region that is manual over some axes has one array for each coordinate on these axes. Stacked along a new first
dimension, which the manual axes split on both sides, they are one array, and no plan can mix them
(``stack_manual_axes``). Example: on x=2, y=2, manual over x, ``f32[8]`` from rows over y to replicated is ``f32[2,8]``
from [x, y] to [x, -].

Most prices follow from the splits alone (``least_received``). Where tiles are even, and along each dimension one split
begins with the other, a device lacks of the tile that it wants what no plan can do without, and the planner has a plan
that receives no more. Example, ``f32[8,8]`` on d=4, from rows to columns over d: the wanted tile has 16 elements, of
which a device has a quarter: 12 elements, 48 bytes. Where tiles change their owners, as from x to y along one
dimension, some device has nothing of its tile: it receives all of it, and the planner at times a little more. Where
tiles are uneven, the device that comes first in all tilings lacks the rest of its tile: ``f32[10,8]`` on d=4, from rows
to columns, 10 * 2 - 3 * 2 elements, 56 bytes, and others may lack more.

State: a table of prices by (type, source, target, manual axes), and one of bounds. A new price is a formula, or plans
one redistribution.
"""

from __future__ import annotations

from shardpass.ops.splits.prime_mesh import PrimeMesh, prime_mesh
from shardpass.program.program import Array
from shardpass.redistribute import estimate_bytes
from shardpass.sharding import Sharding


class Prices:
    """Prices redistributions in bytes on one machine of ``devices``, and remembers them."""

    def __init__(self, devices: int) -> None:
        self.devices = devices
        self._known: dict[tuple[Array, Sharding, Sharding, tuple[int, ...]], int] = {}
        self._least: dict[tuple[Array, Sharding, Sharding, tuple[int, ...]], int] = {}  # of those that are not known

    @property
    def count(self) -> int:
        """The number of prices and bounds that are remembered."""
        return len(self._known) + len(self._least)

    def move(self, array: Array, source: Sharding, target: Sharding, mesh: PrimeMesh) -> int:
        """Return the bytes that a device receives to reshard an array from ``source`` to ``target``."""
        if source is target or source == target:
            return 0
        key = (array, source, target, mesh.manual)
        known = self._known.get(key)
        if known is None:
            known, exact = least_received(array, source, target, mesh)
            if not exact:
                shape = array.shape
                if mesh.manual:
                    shape, source, target = stack_manual_axes(shape, source, target, mesh)
                known = estimate_bytes(shape, array.element.mlir, source, target, num_devices=self.devices)
            self._known[key] = known
        return known

    def least(self, array: Array, source: Sharding, target: Sharding, mesh: PrimeMesh) -> int:
        """Return a lower bound in bytes of ``move``, without planning a redistribution."""
        if source is target or source == target:
            return 0
        key = (array, source, target, mesh.manual)
        known = self._known.get(key)
        if known is None:
            known = self._least.get(key)
        if known is None:
            known, exact = least_received(array, source, target, mesh)
            (self._known if exact else self._least)[key] = known
        return known


def least_received(array: Array, source: Sharding, target: Sharding, mesh: PrimeMesh) -> tuple[int, bool]:
    """Return a lower bound of the bytes that some device receives, and whether the planner reaches it."""
    before, after = mesh.dims(source, array.rank), mesh.dims(target, array.rank)
    if before is None or after is None or array.element.bits % 8:
        return 0, False
    wanted = kept = 1  # elements of the tile of the device that comes first in all tilings, and of its own in that
    nested = even = True
    for size, own, other in zip(array.shape, before, after, strict=True):
        shared = min(len(own), len(other))
        counts = mesh.count(own), mesh.count(other)
        even = even and not size % counts[0] and not size % counts[1]
        nested = nested and own[:shared] == other[:shared]
        tiles = -(-size // counts[0]), -(-size // counts[1])
        wanted *= tiles[1]
        kept *= min(tiles)
    return array.element.bytes(wanted if even and not nested else wanted - kept), even and nested


def stack_manual_axes(
    shape: tuple[int, ...], source: Sharding, target: Sharding, mesh: PrimeMesh
) -> tuple[tuple[int, ...], Sharding, Sharding]:
    """Convert a redistribution inside of a partly manual region to one of whole arrays: (shape, source, target)."""
    outside = prime_mesh(mesh.mesh)
    sides = []
    for sharding in (source, target):
        dims = mesh.dims(sharding, len(shape))
        sides.append(outside.sharding((mesh.manual, *(dims or ((),) * len(shape)))))
    return (mesh.count(mesh.manual), *shape), sides[0], sides[1]
