"""Write shardings and constraints in the notation of a module: Shardy's, or GSPMD's.

A module of Shardy's has ``sdy.sharding`` and ``sdy.sharding_constraint`` over a mesh that it names; one of GSPMD's has
``mhlo.sharding`` and ``custom_call @Sharding``.
"""

from __future__ import annotations

from typing import Any

from jaxlib.mlir import ir

from shardpass.ir.annotations import CONSTRAINT, SHARDING, make_custom_call
from shardpass.ir.replica_groups import meshes_of
from shardpass.ir.tensors import operation
from shardpass.ir.walk import every_op
from shardpass.sharding import Mesh, Sharding
from shardpass.sharding.notations.sdy import sdy_text
from shardpass.sharding.quoting import mlir_quoted

SDY_SHARDING = "sdy.sharding"
_MESH_NAME = "added_mesh"


class Notation:
    """Writes shardings over ``mesh`` in the notation of ``module``; adds the mesh to a Shardy module.

    ``shardy``: take Shardy's notation for a module that has neither.
    """

    def __init__(self, module: Any, mesh: Mesh, shardy: bool = False) -> None:
        meshes = meshes_of(module)
        self._name = ""  # of Shardy's mesh; "" in GSPMD's notation
        if shardy or meshes or any(op.name.startswith("sdy.") for op in every_op(module.operation)):
            known = (name for name, one in meshes.items() if one == mesh)
            self._name = next(known, "") or _added(module, mesh, set(meshes))
        self.attribute = SDY_SHARDING if self._name else SHARDING  # the name of that of arguments and results
        self._on_constraints = "sharding" if self._name else SHARDING

    def value(self, sharding: Sharding) -> Any:
        """Return ``sharding`` as an attribute, in the current context."""
        if self._name:
            return ir.Attribute.parse(sdy_text(sharding, self._name))
        return ir.StringAttr.get(str(sharding))

    def constraint(self, value: Any, sharding: Sharding) -> Any:
        """Build a constraint of ``value`` at the current insertion point; returns its op."""
        attributes = {self._on_constraints: self.value(sharding)}
        if not self._name:
            return operation(make_custom_call(CONSTRAINT, value, value.type, attributes).owner)
        return ir.Operation.create(
            "sdy.sharding_constraint", results=[value.type], operands=[value], attributes=attributes
        )

    def rewrite(self, constraint: Any, sharding: Sharding) -> None:
        """Replace the sharding of an op that is a constraint."""
        constraint.attributes[self._on_constraints] = self.value(sharding)


def _added(module: Any, mesh: Mesh, names: set[str]) -> str:
    """Add ``mesh`` to ``module`` and return its name."""
    name = _MESH_NAME
    while name in names:
        name += "_"
    with ir.InsertionPoint.at_block_begin(module.body):
        attributes = {"sym_name": ir.StringAttr.get(name), "mesh": mesh_attribute(mesh)}
        ir.Operation.create("sdy.mesh", attributes=attributes)
    return name


def mesh_attribute(mesh: Mesh) -> Any:
    """Make the ``#sdy.mesh`` of ``mesh``, in the current context."""
    axes = ", ".join(f"{mlir_quoted(axis)}={size}" for axis, size in mesh.axes)
    ids = "" if mesh.device_ids is None else f", device_ids=[{', '.join(map(str, mesh.device_ids))}]"
    return ir.Attribute.parse(f"#sdy.mesh<[{axes}]{ids}>")
