"""Convert replica groups given by axes of a mesh to lists of devices.

With jaxlib 0.12 JAX writes ``#stablehlo.replica_group_mesh_axes<mesh = @m, axes = [...]>`` on a collective, and keeps
the mesh ``@m`` at the top of the module. Example, on ``@m = ["x"=2, "y"=2]``: the axes ``["y"]`` are the groups
``[[0, 1], [2, 3]]``.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from jaxlib.mlir import ir
from jaxlib.mlir.dialects import sdy
from jaxlib.mlir.dialects import stablehlo as hlo

from shardpass.ir.collectives import OPS
from shardpass.ir.tensors import dense_i64
from shardpass.ir.walk import every_op, operation
from shardpass.sharding import AxisRef, Mesh, Sharding
from shardpass.sharding.axes import check_disjoint
from shardpass.sharding.notations.sdy import mesh_or_device

GROUPS = "replica_groups"


def list_devices(op: Any, meshes: Mapping[str, Mesh | int]) -> None:
    """Write the groups of a collective as lists. ``meshes``: by name; a device for a mesh without axes.

    Raises ShardingError for axes that the mesh lacks, or that are named twice.
    """
    groups = op.attributes[GROUPS]
    if str(groups).startswith("#stablehlo.replica_group_mesh_axes"):
        op.attributes[GROUPS] = dense_i64(_groups(hlo.ReplicaGroupMeshAxesAttr(groups), meshes))


def list_devices_in(module: Any) -> None:
    """Write the groups of all collectives of ``module`` as lists. Raises as ``list_devices``."""
    meshes = meshes_of(module)
    for op in every_op(module.operation):
        if op.name in OPS and GROUPS in op.attributes:
            list_devices(op, meshes)


def meshes_of(module: Any) -> dict[str, Mesh | int]:
    """Return the Shardy meshes of ``module`` by name; a device for a mesh without axes."""
    return {
        op.attributes["sym_name"].value: mesh_or_device(*mesh_parts(op.attributes["mesh"]))
        for op in module.body.operations
        if operation(op).name == "sdy.mesh"
    }


def mesh_parts(attribute: Any) -> tuple[tuple[tuple[str, int], ...], Any]:
    """Return the axes with their sizes, and the device ids, of an ``#sdy.mesh``."""
    mesh = sdy.MeshAttr(attribute)
    return tuple((axis.name, axis.size) for axis in map(sdy.MeshAxisAttr, mesh.axes)), mesh.device_ids


def _groups(groups: Any, meshes: Mapping[str, Mesh | int]) -> Any:
    name = groups.mesh.value if isinstance(groups.mesh, ir.FlatSymbolRefAttr) else ""
    mesh = meshes[name] if name in meshes else _written_out(hlo.MeshAttr(groups.mesh))
    if isinstance(mesh, int):
        return np.array([[mesh]])
    axes = []
    for axis in map(hlo.AxisRefAttr, groups.axes):
        part = axis.sub_axis_info
        part = None if part is None else hlo.SubAxisInfoAttr(part)
        axes.append(AxisRef(axis.name) if part is None else AxisRef(axis.name, part.pre_size, part.size))
    check_disjoint(mesh, [((mesh.ref(axis),), "the replica groups") for axis in axes])
    return Sharding.tiled(mesh, ()).groups(axes)


def _written_out(mesh: Any) -> Mesh | int:
    """Return the mesh that is written out in an attribute."""
    axes = [(axis.name, axis.size) for axis in map(hlo.MeshAxisAttr, mesh.axes)]
    ids = [] if mesh.device_ids is None else list(map(int, ir.DenseIntElementsAttr(mesh.device_ids)))
    return mesh_or_device(axes, ids)
