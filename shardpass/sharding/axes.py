"""Lists of axes of one mesh: in mesh order, and held apart."""

from __future__ import annotations

from collections.abc import Iterable

from shardpass.diagnostics import table_sharding as table
from shardpass.sharding.mesh import AxisRef, Mesh, joined

Axes = tuple[AxisRef, ...]


def in_mesh_order(mesh: Mesh, axes: Iterable[AxisRef]) -> Axes:
    return joined(mesh, sorted(axes, key=lambda a: mesh.digit(a), reverse=True))


def check_disjoint(mesh: Mesh, places: Iterable[tuple[Axes, str]]) -> None:
    """Raises ShardingError where two places share a part of an axis."""
    spans: dict[str, list[tuple[int, int, AxisRef, str]]] = {}
    for axes, where in places:
        for axis in axes:
            stride, size = mesh.digit(axis)
            others = spans.setdefault(axis.name, [])
            for low, high, other, first in others:
                if stride < high and low < stride * size:
                    shown = str(axis) if axis == other else f"{axis} (which overlaps {other})"
                    raise table.AXIS_TWICE.error(axis=shown, first=first, second=where)
            others.append((stride, stride * size, axis, where))
