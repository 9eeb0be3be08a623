"""Place the groups of a collective among the devices of a machine.

Example: on hosts of 8, an axis of 4 at stride 4 is two neighbours inside of a host, and two hosts.
"""

from __future__ import annotations

from shardpass.cost.collective import PERMUTE, Axis
from shardpass.cost.groups import axes_on
from shardpass.cost.machine import Machine
from shardpass.ops.splits.factors import Axes
from shardpass.ops.splits.prime_mesh import PrimeMesh


def axes_over(machine: Machine, kind: str, axes: Axes, mesh: PrimeMesh) -> tuple[Axis, ...]:
    """List the axes of devices over which a collective of ``kind`` over ``axes`` of ``mesh`` runs on ``machine``."""
    if kind != PERMUTE and machine.joins_all(mesh.num_devices):
        return (Axis(mesh.count(axes)),)
    return axes_on(machine, kind, mesh.groups(axes), mesh.borders)
