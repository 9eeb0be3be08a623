"""The meaning of a sharding in a normal form, for equality, and axes said in the terms of another mesh."""

from __future__ import annotations

import numpy as np

from shardpass.sharding import digits as dg
from shardpass.sharding.axes import Axes
from shardpass.sharding.digits import Digit, Ints
from shardpass.sharding.mesh import Mesh
from shardpass.sharding.model import MOST_DEVICES, Sharding
from shardpass.sharding.notes import Kind


def device_digits(sharding: Sharding, axes: Axes) -> tuple[Digit, ...] | None:
    """The number that ``axes`` writes, in digits of the device number; None where there are none."""
    mesh = sharding.mesh
    assert mesh is not None
    if mesh.is_iota:
        return dg.merge(mesh.digit(a) for a in axes)
    table = sharding.number(axes)
    return dg.digits_of(table, _count(mesh, axes))


def digits_on(sharding: Sharding, axes: Axes, mesh: Mesh) -> tuple[Digit, ...] | None:
    """The number that ``axes`` of ``sharding`` writes, in digits of the position in ``mesh``; or None."""
    own = sharding.mesh
    assert own is not None
    if (own.is_iota and mesh.is_iota) or (own.size == mesh.size and np.array_equal(own.order, mesh.order)):
        return dg.merge(own.digit(a) for a in axes)
    return dg.digits_of(sharding.number(axes)[mesh.order], _count(own, axes))


def _count(mesh: Mesh, axes: Axes) -> int:
    return dg.total(mesh.digit(a) for a in axes)


def meaning(sharding: Sharding) -> tuple[object, ...]:
    """A key that is equal for two shardings exactly if they mean the same."""
    if sharding.notes.problems:
        return ("text", str(sharding))
    if sharding.kind is Kind.MAXIMAL:
        return ("maximal", sharding.device)
    mesh = sharding.mesh
    if sharding.kind is Kind.UNREDUCED:
        return ("unreduced", sharding.reduction)
    if sharding.kind is not Kind.TILED or mesh is None:
        return (str(sharding.kind),)
    if sharding.is_replicated:
        return ("replicated",)
    if sharding.is_manual:
        return ("manual",)
    if sharding.is_unreduced:
        return ("unreduced", sharding.reduction)
    dims = tuple(_form(sharding, axes) for axes in sharding.dims)
    key: tuple[object, ...] = (mesh.size, dims, _form(sharding, sharding.manual))
    if sharding.unreduced:
        key += (_summands(sharding), sharding.reduction)
    if sharding.maximal_axes:
        key += ("maximal", _form(sharding, sharding.maximal_axes))
    return key


def _form(sharding: Sharding, axes: Axes) -> object:
    found = device_digits(sharding, axes)
    return sharding.number(axes).tobytes() if found is None else found


def _summands(sharding: Sharding) -> object:
    """Which devices hold the same summand of the same tile: a partition, numbered by first occurrence.

    The order of the summands means nothing, so their coordinates cannot be compared as they are.
    """
    axes = (*(a for dim in sharding.dims for a in dim), *sharding.manual, *sharding.unreduced)
    mesh = sharding.mesh
    assert mesh is not None
    if mesh.size > MOST_DEVICES:  # always a plain mesh, on which sorted digits say the same
        return dg.merge(sorted((mesh.digit(a) for a in sharding.unreduced), reverse=True))
    table = sharding.number(axes)
    _, first, label = np.unique(table, return_index=True, return_inverse=True)
    order: Ints = np.argsort(np.argsort(first))
    return order[label].astype(np.int64).tobytes()
