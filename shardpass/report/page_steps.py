"""The steps of a redistribution for the page: the parts of the array on each device before, between and after them.

The state between two steps may not be a sharding: a device may hold rows 0 to 3 and 8 to 11. So each state is read off
a simulation: for each of two dimensions the parts, the part of each device, and the axes of the mesh along which the
part changes from device to device. Devices are listed in the order of the mesh.

Example: f32[16,16] from P('x') to P(None, 'x') over 4 devices. Before, dimension 0 has the parts [0,4] to [12,16], of
devices 0 to 3 by axis x; afterwards dimension 1 has them.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from shardpass.diagnostics import ShardpassError
from shardpass.redistribute import Plan, plan_redistribution
from shardpass.redistribute.stages import Intervals, Stage, covered, drawn_dimensions, stages
from shardpass.report.picture import shape_of
from shardpass.report.report import Report
from shardpass.report.rows import Row
from shardpass.sharding import Mesh

MOST_DEVICES = 64  # that are drawn
MOST_PARTS = 32  # of a dimension

Plain = dict[str, Any]


class Ways:
    """The redistributions of a report, once each: ``listed`` has them, ``of`` returns their numbers in this list."""

    def __init__(self, report: Report) -> None:
        self.mesh: Mesh | None = None if report.plan is None else report.plan.program.mesh.mesh
        self.listed: list[Plain] = []
        self._known: dict[tuple[str, str, str], tuple[int, frozenset[str]] | None] = {}

    @property
    def ids(self) -> list[int] | None:
        """The devices in mesh order; None if the order is 0, 1, ..."""
        order = None if self.mesh is None else self.mesh.order.tolist()
        return None if order is None or order == list(range(len(order))) else order

    def of(self, row: Row) -> int | None:
        """Return the number of the redistribution that ``row`` is a step of.

        None where ``row`` belongs to no redistribution, or the redistribution has no step of its kind any more.
        """
        key = (row.type, row.source_text, row.target_text)
        if not all(key) or self.mesh is None or self.mesh.size > MOST_DEVICES:
            return None
        if key not in self._known:
            self._known[key] = self._way(*key, self.mesh)
        known = self._known[key]
        return None if known is None or row.kind not in known[1] else known[0]

    def _way(self, type_: str, source: str, target: str, mesh: Mesh) -> tuple[int, frozenset[str]] | None:
        try:
            element, shape = type_.partition("[")[0], shape_of(type_)
            plan = plan_redistribution(shape, element, source, target, num_devices=mesh.size)
        except ShardpassError:  # a type that cannot be redistributed, or an array stacked for a manual region
            return None
        drawn = drawn_dimensions(plan)
        panels = [_panel(stage, plan, drawn, mesh) for stage in stages(plan)]
        self.listed.append({
            "steps": [{"kind": step.kind.value, "axes": _axes(step.groups, mesh), "bytes": step.bytes}
                      for step in plan.steps],
            "panels": panels if all(panels) and len(panels) == len(plan.steps) + 1 else None,
        })  # fmt: skip
        return len(self.listed) - 1, frozenset(step.kind.value for step in plan.steps)


def _axes(groups: Any, mesh: Mesh) -> list[str]:
    """Return the axes along which the devices of a group differ; for a collective_permute, the devices of a pair."""
    if not groups.size:
        return []
    places = mesh.position[groups]
    coordinates = np.array(np.unravel_index(places, mesh.shape))  # [axes, groups, devices]
    return [name for (name, _), at in zip(mesh.axes, coordinates, strict=True) if (at != at[:, :1]).any()]


def _panel(stage: Stage, plan: Plan, drawn: Sequence[int | None], mesh: Mesh) -> Plain | None:
    """Describe one state for the page; None if a dimension has too many parts to draw."""
    order = [int(device) for device in mesh.order]
    others = [dim for dim in range(len(plan.shape)) if dim not in drawn]
    covers = {dim: [covered(stage.state, device, dim) for device in order] for dim in range(len(plan.shape))}
    real = [bool(stage.state.real[device]) for device in order]
    first = [all(_holds_first(covers[dim][at]) for dim in others) for at in range(len(order))]
    shown = [here and there for here, there in zip(real, first, strict=True)]
    dims = [None if dim is None else _dimension(dim, plan.shape[dim], covers[dim], shown, mesh) for dim in drawn]
    if any(dim is not None and len(dim["parts"]) > MOST_PARTS for dim in dims):
        return None
    return {"dims": [dim for dim in dims if dim is not None], "shown": shown}


def _holds_first(part: Intervals) -> bool:
    return any(start <= 0 < stop for start, stop in part)


def _dimension(dim: int, size: int, covers: Sequence[Intervals], shown: Sequence[bool], mesh: Mesh) -> Plain:
    parts = sorted({part for part, here in zip(covers, shown, strict=True) if here})
    number = {part: k for k, part in enumerate(parts)}
    of = [number[part] if here else -1 for part, here in zip(covers, shown, strict=True)]
    clipped = [[[min(a, size), min(b, size)] for a, b in part] for part in parts]
    return {"dim": dim, "size": size, "parts": clipped, "of": of, "axes": _followed(of, mesh)}


def _followed(of: Sequence[int], mesh: Mesh) -> list[str]:
    """Return the axes along which the part changes, the axis of the longest stride first."""
    grid = np.array(of).reshape(mesh.shape)
    strides = {}
    for axis, (name, size) in enumerate(mesh.axes):
        if size > 1 and (change := np.abs(np.diff(grid, axis=axis)).max()) > 0:
            strides[name] = int(change)
    return sorted(strides, key=lambda name: -strides[name])
