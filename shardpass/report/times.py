"""Seconds of the collectives of a partitioned module on a machine, by the links they use (``cost``)."""

from __future__ import annotations

from typing import Any

import numpy as np

from shardpass.cost.groups import seconds
from shardpass.cost.machine import Machine
from shardpass.ir.collectives import CollectiveUse, groups_of
from shardpass.sharding import Mesh


class Times:
    """Model the seconds of collectives on one machine, over one mesh."""

    def __init__(self, machine: Machine, mesh: Mesh | None, devices: int) -> None:
        self.machine = machine
        self.borders = tuple(mesh.strides.values()) if mesh is not None and mesh.is_iota else ()
        self.devices = devices
        self._all = np.arange(devices)[None]

    def of(self, op: Any, use: CollectiveUse) -> float:
        """Return the total seconds over all runs."""
        if not use.bytes_each or not use.counted:
            return 0.0
        return self._once(op, use) * use.times

    def _once(self, op: Any, use: CollectiveUse) -> float:
        groups = groups_of(op, self.devices)
        known = bool(groups.size) and int(np.min(groups)) >= 0
        return seconds(self.machine, use.kind, use.bytes_each, groups if known else self._all, self.borders)
