"""What collectives take on a machine, by its profile: latency and bandwidth of the links that they cross."""

from __future__ import annotations

from typing import Any

import numpy as np

from shardpass.ir.collectives import CollectiveUse, groups_of
from shardpass.redistribute.problem.sub_axes import sub_axes_of
from shardpass.redistribute.program.steps import Step, StepKind
from shardpass.redistribute.terms.costs import Profile, step_seconds, tiers
from shardpass.sharding import Mesh


class Times:
    """What collectives take on one machine, over one mesh."""

    def __init__(self, machine: Profile, mesh: Mesh | None, devices: int) -> None:
        self.machine = machine
        flat = machine.is_flat or mesh is None
        self.network = None if flat or mesh is None else tiers(machine, sub_axes_of(mesh))
        self.devices = devices

    def of(self, op: Any, use: CollectiveUse) -> float:
        """Seconds of all the times that it runs."""
        if not use.bytes_each or not use.counted:
            return 0.0
        return self._once(op, use) * use.times

    def _once(self, op: Any, use: CollectiveUse) -> float:
        machine = self.machine
        groups = groups_of(op, self.devices)
        if self.network is None or not groups.size or int(np.min(groups)) < 0:
            return machine.latency + use.bytes_each / machine.bandwidth
        kind = StepKind.COLLECTIVE_PERMUTE if use.kind == "collective_permute" else StepKind.ALL_GATHER
        return step_seconds(Step(kind, (), groups, (), (), use.bytes_each, 0), self.network)
