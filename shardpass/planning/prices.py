"""What moving an array costs: bytes that one device receives, by the default planner of redistributions.

A region that is manual over some axes has one array for each coordinate on these axes. Stacked along a new first
dimension, which the manual axes split on both sides, they are one array, and no plan can mix them
(``stack_manual_axes``). Example: on x=2, y=2, manual over x, ``f32[8]`` from rows over y to replicated is ``f32[2,8]``
from [x, y] to [x, -].

State: a table of prices by (type, source, target, manual axes). A new entry plans one redistribution.
"""

from __future__ import annotations

from shardpass.ops.splits.prime_mesh import PrimeMesh, prime_mesh
from shardpass.program.program import Array
from shardpass.redistribute import estimate_bytes
from shardpass.sharding import Sharding


class Prices:
    """Prices of redistributions on one machine of ``devices``."""

    def __init__(self, devices: int) -> None:
        self.devices = devices
        self._known: dict[tuple[Array, Sharding, Sharding, tuple[int, ...]], int] = {}

    def move(self, array: Array, source: Sharding, target: Sharding, mesh: PrimeMesh) -> int:
        """Bytes that a device receives to bring an array from ``source`` to ``target``."""
        if source is target or source == target:
            return 0
        key = (array, source, target, mesh.manual)
        known = self._known.get(key)
        if known is None:
            shape = array.shape
            if mesh.manual:
                shape, source, target = stack_manual_axes(shape, source, target, mesh)
            known = estimate_bytes(shape, array.element.mlir, source, target, num_devices=self.devices)
            self._known[key] = known
        return known


def stack_manual_axes(
    shape: tuple[int, ...], source: Sharding, target: Sharding, mesh: PrimeMesh
) -> tuple[tuple[int, ...], Sharding, Sharding]:
    """A redistribution inside a partly manual region as one of whole arrays: (shape, source, target)."""
    outside = prime_mesh(mesh.mesh)
    sides = []
    for sharding in (source, target):
        dims = mesh.dims(sharding, len(shape))
        sides.append(outside.sharding((mesh.manual, *(dims or ((),) * len(shape)))))
    return (mesh.count(mesh.manual), *shape), sides[0], sides[1]
