"""Operations on lists of axes of one mesh: normal form, order, disjointness, and conversion from digits.

A list of axes, major to minor, writes one number (see ``digits``): the index of a tile, or of a copy. Its normal
form has no axis of size 1, and no two neighbours that together are one axis or sub-axis.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from shardpass.diagnostics import table_sharding as table
from shardpass.sharding.digits import Digit
from shardpass.sharding.mesh import AxisRef, Mesh

Axes = tuple[AxisRef, ...]

_SUB_AXIS = re.compile(r"(?P<name>.*):\((?P<pre>\d+)\)(?P<size>\d+)", re.DOTALL)


def joined(mesh: Mesh, axes: Iterable[AxisRef]) -> Axes:
    """Return the normal form of ``axes``, major to minor: ``x:(1)2, x:(2)2`` on an axis x of 4 is ``x``."""
    out: list[AxisRef] = []
    for axis in axes:
        if mesh.ref_size(axis) == 1:
            continue
        last = out[-1] if out else None
        if (
            last is not None
            and last.name == axis.name
            and last.size is not None
            and axis.size is not None
            and axis.pre == last.pre * last.size
        ):
            out[-1] = mesh.ref(AxisRef(axis.name, last.pre, last.size * axis.size))
            continue
        out.append(axis)
    return tuple(out)


def in_mesh_order(mesh: Mesh, axes: Iterable[AxisRef]) -> Axes:
    """Return the normal form of a set of axes, in mesh order from major to minor."""
    return joined(mesh, sorted(axes, key=mesh.digit, reverse=True))


def check_disjoint(mesh: Mesh, places: Iterable[tuple[Axes, str]], *, ones: bool = False) -> None:
    """Raise ShardingError if a part of an axis is used twice. Each place consists of axes and a name for messages.

    ``ones``: check axes of size 1 too, whose repetition is harmless but refused by XLA and Shardy.
    """
    spans: dict[str, list[tuple[int, int, AxisRef, str]]] = {}
    for axes, where in places:
        for axis in axes:
            others = spans.get(axis.name)
            stride, size = mesh.digit(axis)
            if others is None:
                spans[axis.name] = [(stride, stride * size, axis, where)]
                continue
            for low, high, other, first in others:
                if (stride < high and low < stride * size) or (ones and axis == other):
                    shown = str(axis) if axis == other else f"{axis} (which overlaps {other})"
                    raise table.AXIS_TWICE.error(axis=shown, first=first, second=where)
            others.append((stride, stride * size, axis, where))


def refs(mesh: Mesh, digits: Iterable[Digit]) -> Axes | None:
    """Return the axes and sub-axes of ``mesh`` that are ``digits`` of the mesh position; None if a digit is not a
    sub-axis.
    """
    out: list[AxisRef] = []
    for stride, size in digits:
        top = stride * size
        while top > stride:
            name = _covering(mesh, top)
            if name is None:
                return None
            low, full = mesh.strides[name], mesh.sizes[name]
            cut = max(stride, low)
            if (low * full) % top or top % cut or cut % low:
                return None
            out.append(mesh.ref(AxisRef(name, low * full // top, top // cut)))
            top = cut
    return joined(mesh, out)


def _covering(mesh: Mesh, top: int) -> str | None:
    """Return the axis that contains the digit whose upper end is ``top``; the digit has size 2 or more."""
    for name, size in mesh.axes:
        low = mesh.strides[name]
        if low < top <= low * size:
            return name
    return None


def part_name(name: str, pre: int, size: int, of: int) -> str:
    """Name the part (pre, size) of an axis ``name`` of size ``of``: ``x:(1)2``, or ``x`` for the whole axis."""
    if size == of:
        return name
    match = _SUB_AXIS.fullmatch(name)
    if match and int(match["size"]) == of:
        name, pre = match["name"], pre * int(match["pre"])
    return f"{name}:({pre}){size}"


def numbered_axes(sizes: Iterable[int]) -> tuple[tuple[str, int], ...]:
    """Make axes axis_0, axis_1.. of ``sizes``, for a mesh without names."""
    return tuple((f"axis_{k}", size) for k, size in enumerate(sizes))
