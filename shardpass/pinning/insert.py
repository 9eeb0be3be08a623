"""Constraints at points of a module, in the notation that the module has: Shardy's, or XLA's ``@Sharding`` calls.

Invariant: nothing but constraints is added; a module without them is the one that was given.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from jaxlib.mlir import ir

from shardpass.ir.annotations import CONSTRAINT, NUM_PARTITIONS, SHARDING, main_of, make_custom_call, set_num_devices
from shardpass.ir.context import copy_module
from shardpass.ir.replica_groups import meshes_of
from shardpass.ir.walk import operation
from shardpass.pinning.points import ARGUMENT, OPERAND, Point, Spec, numbered_ops
from shardpass.sharding import Mesh, Sharding
from shardpass.sharding.notations.sdy import sdy_text
from shardpass.sharding.quoting import mlir_quoted

MESH_NAME = "pinned_mesh"

Make = Callable[[Any, Sharding], Any]  # a constraint of a value, at the current insertion point


def pinned_module(module: Any, mesh: Mesh, points: Iterable[Point]) -> Any:
    """A copy of ``module`` with a constraint at each of ``points``, whose axes are those of ``mesh``."""
    copy = copy_module(module)
    with copy.context, ir.Location.unknown():
        if NUM_PARTITIONS not in copy.operation.attributes:
            set_num_devices(copy, mesh.size)
        _Inserting(copy, mesh).all(points)
    return copy


class _Inserting:
    """Inserts into one module. ``made``: constraints for operands, by value, sharding and block, to be shared."""

    def __init__(self, module: Any, mesh: Mesh) -> None:
        self.module, self.mesh = module, mesh
        self.ops = dict(numbered_ops(module))
        self.make = self._notation()
        self.made: dict[tuple[Any, Spec, Any], Any] = {}

    def all(self, points: Iterable[Point]) -> None:
        """Definitions first: an operand is constrained on top of what its definition was constrained to."""
        points = sorted(points, key=lambda point: point.spot)  # the first user in a block stands before the others
        for point in points:
            if point.spot.side != OPERAND:
                self._definition(point)
        for point in points:
            if point.spot.side == OPERAND:
                self._operand(point)

    def _definition(self, point: Point) -> None:
        if point.spot.side == ARGUMENT:
            block = operation(main_of(self.module)).regions[0].blocks[0]
            value, where = block.arguments[point.spot.place], ir.InsertionPoint.at_block_begin(block)
            location = value.location
        else:
            op = self.ops[point.spot.op]
            value, where, location = op.results[point.spot.place], ir.InsertionPoint.after(op), op.location
        with where, location:
            made = self.make(value, self._sharding(point))
        value.replace_all_uses_except(made, [operation(made.owner)])

    def _operand(self, point: Point) -> None:
        op = self.ops[point.spot.op]
        value = op.operands[point.spot.place]
        key = value, point.spec, operation(op.parent).regions[0] if op.block is None else op.block
        if key not in self.made:
            with ir.InsertionPoint(op), op.location:
                self.made[key] = self.make(value, self._sharding(point))
        op.operands[point.spot.place] = self.made[key]

    def _sharding(self, point: Point) -> Sharding:
        return Sharding.tiled(self.mesh, point.spec)

    def _notation(self) -> Make:
        meshes = meshes_of(self.module)
        if not meshes and not self._is_shardys():
            return self._custom_call
        name = next((name for name, mesh in meshes.items() if mesh == self.mesh), "")
        if not name:
            name = MESH_NAME
            while name in meshes:
                name += "_"
            axes = ", ".join(f"{mlir_quoted(axis)}={size}" for axis, size in self.mesh.axes)
            ids = "" if self.mesh.device_ids is None else f", device_ids=[{', '.join(map(str, self.mesh.device_ids))}]"
            with ir.InsertionPoint.at_block_begin(self.module.body):
                mesh = ir.Attribute.parse(f"#sdy.mesh<[{axes}]{ids}>")
                ir.Operation.create("sdy.mesh", attributes={"sym_name": ir.StringAttr.get(name), "mesh": mesh})

        def make(value: Any, sharding: Sharding) -> Any:
            said = ir.Attribute.parse(sdy_text(sharding, name))
            made = ir.Operation.create(
                "sdy.sharding_constraint", operands=[value], results=[value.type], attributes={"sharding": said}
            )
            return made.results[0]

        return make

    def _is_shardys(self) -> bool:
        return any(op.name.startswith("sdy.") for op in self.ops.values())

    @staticmethod
    def _custom_call(value: Any, sharding: Sharding) -> Any:
        return make_custom_call(CONSTRAINT, value, value.type, {SHARDING: ir.StringAttr.get(str(sharding))})
