"""Keys of tiled shardings: two shardings mean the same if and only if their keys are equal.

Two shardings mean the same when every device holds the same tile for every shape, of the same partial sum, at the
same manual coordinates (the base offset map of Rink et al., section 4.1, with XLA's subgroups). Each list of axes gives
a number to every device; as digits of the device number this number has one normal form (see ``digits``), whatever
mesh it was written on. Where the device order allows no digits, the key holds the table of the numbers.

Example: x on the mesh x=4, y=2 and (a, b) on a=2, b=2, c=2 are the same digit (2, 4) of the device number.

Cost: O(axes) on a plain mesh; O(n log n) with any other device order.
"""

from __future__ import annotations

import numpy as np

from shardpass.sharding import digits as dg
from shardpass.sharding.axes import Axes
from shardpass.sharding.coordinates import device_digits, number
from shardpass.sharding.digits import Ints
from shardpass.sharding.mesh import Mesh

MOST_DEVICES = 1 << 24  # of a table with a row for each device

Key = tuple[object, ...]


def tiled_key(
    mesh: Mesh, dims: tuple[Axes, ...], *, manual: Axes, unreduced: Axes, reduction: str, maximal_axes: Axes
) -> Key:
    """Return the key of a sharding that splits dimensions, or is manual or unreduced over some axes."""
    key: Key = (mesh.size, tuple(_form(mesh, axes) for axes in dims), _form(mesh, manual))
    if unreduced:
        key += (_summands(mesh, dims, manual, unreduced), reduction)
    if maximal_axes:
        key += ("maximal", _form(mesh, maximal_axes))
    return key


def _form(mesh: Mesh, axes: Axes) -> object:
    digits = device_digits(mesh, axes)
    return number(mesh, axes).tobytes() if digits is None else digits


def _summands(mesh: Mesh, dims: tuple[Axes, ...], manual: Axes, unreduced: Axes) -> object:
    """Partition devices by summand and tile; the parts are numbered by first occurrence.

    The order of the summands has no meaning, so their coordinates cannot be compared directly.
    """
    if mesh.size > MOST_DEVICES:  # always a plain mesh, on which sorted digits say the same
        return dg.merge(sorted(map(mesh.digit, unreduced), reverse=True))
    axes = (*(axis for part in dims for axis in part), *manual, *unreduced)
    _, first, label = np.unique(number(mesh, axes), return_index=True, return_inverse=True)
    order: Ints = np.argsort(np.argsort(first))
    return order[label].astype(np.int64).tobytes()
