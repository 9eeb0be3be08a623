"""Make shardings from a grid of devices, the inverse of ``tile_assignment``.

Problem: given which device holds which tile, find a mesh and its axes that express this.

Cases, each for 8 devices and the grid [2,4] without subgroups:

1. The devices count through digits, and the grid's dimensions cut these where they end: each dimension takes its
   digits from the major end. ``0,1,..,7`` is the digit (1, 8); the first dimension takes (4, 2), the second (1, 4), on
   the mesh axis_0=2, axis_1=4. The mesh is plain: it counts 0..7.
2. Otherwise (no digits, or cuts that do not nest) the mesh has an axis for each dimension of the grid, and the device
   list as its order: ``3,1,2,0,4,5,6,7`` stands on axis_0=2, axis_1=4 with these device ids.

Cost: O(digits) for digits, O(n log n) for a list of n devices.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import numpy as np

from shardpass.diagnostics import table_sharding as table
from shardpass.sharding import digits as dg
from shardpass.sharding.axes import Axes, numbered_axes
from shardpass.sharding.digits import Digit, Ints
from shardpass.sharding.mesh import AxisRef, Mesh
from shardpass.sharding.model import Sharding
from shardpass.sharding.notes import PLAIN, Kind, Notes
from shardpass.sharding.tile_assignment import Part


def cut(digits: Sequence[Digit], counts: Sequence[int]) -> list[Part] | None:
    """Cut ``digits`` into one part for each of ``counts``, major to minor; None if the cuts do not nest."""
    left = list(digits)
    parts: list[Part] = []
    for count in counts:
        part = dg.take(left, count)
        if part is None:
            return None
        parts.append(part)
    return parts


def from_digits(dims: Sequence[Part], subgroups: Mapping[Kind, Part], notes: Notes = PLAIN) -> Sharding:
    """Make a sharding over a plain mesh, with dimensions split by digits of the device number.

    ``dims`` and ``subgroups`` together hold each device once.
    """
    ordered = sorted((digit for part in (*dims, *subgroups.values()) for digit in part), reverse=True)
    mesh = Mesh(numbered_axes(size for _, size in ordered))
    axis = {digit: AxisRef(f"axis_{k}") for k, digit in enumerate(ordered)}
    split = tuple(tuple(axis[digit] for digit in part) for part in dims)
    groups = {kind: tuple(axis[digit] for digit in part) for kind, part in subgroups.items()}
    return _sharding(mesh, split, groups, notes)


def from_grid(devices: Ints, counts: Sequence[int], kinds: Sequence[Kind], notes: Notes = PLAIN) -> Sharding:
    """Make the sharding of a grid of ``counts``, filled row-major with ``devices``, a permutation of 0..n-1.

    The last dimensions of the grid are subgroups of ``kinds``, each kind once and in XLA's order; copies ascend.
    """
    rank, n = len(counts) - len(kinds), devices.size
    place = np.empty(n, dtype=np.int64)
    place[devices] = np.arange(n)
    digits = dg.digits_of(place, n)
    parts = None if digits is None else cut(digits, counts)
    if parts is not None:
        subgroups = {kind: part for kind, part in zip(kinds, parts[rank:], strict=True) if part}
        return from_digits(parts[:rank], subgroups, notes)
    mesh = Mesh(((f"axis_{k}", size) for k, size in enumerate(counts) if size > 1), devices)
    axes: list[Axes] = [(AxisRef(f"axis_{k}"),) if size > 1 else () for k, size in enumerate(counts)]
    return _sharding(mesh, tuple(axes[:rank]), dict(zip(kinds, axes[rank:], strict=True)), notes)


def from_tiles(index: Ints, counts: Sequence[int]) -> Sharding:
    """Return the sharding in which device d holds tile ``index[d]`` of a grid of ``counts``. int64 [devices, rank].

    Raises:
        ShardingError: a tile without a device, or tiles with different numbers of devices.
    """
    n, counts = len(index), tuple(counts)
    tiles = np.ravel_multi_index(tuple(index.T), counts) if counts else np.zeros(n, dtype=np.int64)
    holders = np.bincount(tiles, minlength=math.prod(counts))
    if holders.min() != holders.max():
        few, many = int(np.argmin(holders)), int(np.argmax(holders))
        named = [tuple(int(k) for k in np.unravel_index(t, counts)) for t in (few, many)]
        raise table.UNEQUAL_GROUPS.error(
            first=named[0], few=int(holders[few]), second=named[1], many=int(holders[many])
        )
    order = np.argsort(tiles, kind="stable").astype(np.int64)
    copies = int(holders[0])
    if n == 1:
        return Sharding.tiled(Mesh((("axis_0", 1),)), [()] * len(counts))
    return from_grid(order, (*counts, copies), (Kind.REPLICATED,)) if copies > 1 else from_grid(order, counts, ())


def _sharding(mesh: Mesh, dims: tuple[Axes, ...], subgroups: Mapping[Kind, Axes], notes: Notes) -> Sharding:
    return Sharding(
        Kind.TILED, mesh, dims, manual=subgroups.get(Kind.MANUAL, ()), unreduced=subgroups.get(Kind.UNREDUCED, ()),
        maximal_axes=subgroups.get(Kind.MAXIMAL, ()), notes=notes,
    )  # fmt: skip
