"""Numbers of devices along lists of mesh axes.

A list of axes, major to minor, gives each device a number: its coordinates on these axes, read as one mixed-radix
number. On the mesh x=2, y=3 the axes (y, x) give device 4, at x=1, y=1, the number 1 * 2 + 1 = 3. All maps of a
sharding (which tile, which copy, which summand a device holds) are such numbers.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from shardpass.sharding import digits as dg
from shardpass.sharding.axes import Axes
from shardpass.sharding.digits import Digit, Ints
from shardpass.sharding.mesh import AxisRef, Mesh


def number(mesh: Mesh, axes: Iterable[AxisRef]) -> Ints:
    """Return the number of each device on ``axes``. int64 [devices]."""
    by_position = dg.values([mesh.digit(axis) for axis in axes], mesh.size)
    return by_position if mesh.is_iota else by_position[mesh.position]


def groups(mesh: Mesh, axes: Iterable[AxisRef | str]) -> Ints:
    """Return the groups of devices that differ only on ``axes``, a group per row, in the order of ``axes``. int64
    [groups, size].

    Rows are sorted by the position of their first device in the mesh.
    """
    digits = [mesh.digit(mesh.ref(axis)) for axis in axes]
    rest = dg.missing(digits, mesh.size)
    out = np.empty(mesh.size, dtype=np.int64)
    out[dg.values([*rest, *digits], mesh.size)] = mesh.order
    return out.reshape(-1, dg.total(digits))


def device_digits(mesh: Mesh, axes: Axes) -> tuple[Digit, ...] | None:
    """Return the number on ``axes`` as digits of the device number; None if the device order does not allow this."""
    if mesh.is_iota:
        return dg.merge(map(mesh.digit, axes))
    return dg.digits_of(number(mesh, axes), _count(mesh, axes))


def digits_on(mesh: Mesh, axes: Axes, other: Mesh) -> tuple[Digit, ...] | None:
    """Return the number on ``axes`` of ``mesh`` as digits of the position in ``other``; None if impossible."""
    if mesh.same_order(other):
        return dg.merge(map(mesh.digit, axes))
    return dg.digits_of(number(mesh, axes)[other.order], _count(mesh, axes))


def _count(mesh: Mesh, axes: Axes) -> int:
    return dg.total(map(mesh.digit, axes))
