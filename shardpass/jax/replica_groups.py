"""Replica groups that JAX 0.12 names by mesh axes, written out as lists of devices.

`#stablehlo.replica_group_mesh_axes<mesh = @mesh, axes = [#stablehlo.axis_ref<name = "x", sub_axis_info = (1)2>]>`: the
devices that differ on these axes alone, major to minor. A list needs no mesh beside it, and every pass can read it.
"""

from __future__ import annotations

import re
from typing import Any

from jaxlib.mlir import ir

from shardpass.ir.tensors import dense_i64, operation
from shardpass.passes.annotations import text
from shardpass.runtime.contract import every_op
from shardpass.sharding import AxisRef, Mesh, Sharding

GROUPS = "replica_groups"
_BY_AXES = re.compile(r"#stablehlo\.replica_group_mesh_axes<mesh = @(\"[^\"]*\"|[\w.$-]+), axes = \[(.*)\]>", re.DOTALL)
_AXIS = re.compile(r'#stablehlo\.axis_ref<name = "([^"]*)"(?:, sub_axis_info = \((\d+)\)(\d+))?>')
_SDY_MESH = re.compile(r"#sdy\.mesh<\[([^\]]*)\](?:, device_ids=\[([^\]]*)\])?>")
_SIZE = re.compile(r'"([^"]*)"=(\d+)')


def to_lists(module: Any) -> None:
    """Rewrites such groups in place; others stay."""
    meshes: dict[str, Mesh] = {}
    for top in module.body.operations:
        if operation(top).name == "sdy.mesh":
            meshes[text(top.attributes["sym_name"])] = read_mesh(str(top.attributes["mesh"]))
    if not meshes:
        return
    with module.context, ir.Location.unknown():
        for top in module.body.operations:
            for op in every_op(operation(top)):
                if GROUPS in op.attributes and (found := _BY_AXES.fullmatch(str(op.attributes[GROUPS]))):
                    op.attributes[GROUPS] = dense_i64(groups_of(meshes[found[1].strip('"')], found[2]))


def groups_of(mesh: Mesh, axes: str) -> Any:
    """int64 [groups, size], each in the order of the axes."""
    refs = [AxisRef(name, int(pre or 1), int(size) if size else None) for name, pre, size in _AXIS.findall(axes)]
    return Sharding.tiled(mesh, ()).groups(refs)


def read_mesh(attribute: str) -> Mesh:
    """Of `#sdy.mesh<["x"=4, "y"=2], device_ids=[..]>`."""
    found = _SDY_MESH.search(attribute)
    assert found is not None  # what MLIR printed
    axes = tuple((name, int(size)) for name, size in _SIZE.findall(found[1]))
    ids = tuple(map(int, found[2].split(","))) if found[2] else None
    return Mesh(axes, ids)
