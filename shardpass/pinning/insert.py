"""Constraints at points of a module, in the notation that the module has: Shardy's, or XLA's ``@Sharding`` calls.

Invariant: nothing but constraints is added; a module without them is the one that was given.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from jaxlib.mlir import ir

from shardpass.ir.annotations import NUM_PARTITIONS, main_of, set_num_devices
from shardpass.ir.constraints import Notation
from shardpass.ir.context import copy_module
from shardpass.ir.walk import operation
from shardpass.pinning.points import ARGUMENT, OPERAND, Point, Spec, numbered_ops
from shardpass.sharding import Mesh, Sharding


def pinned_module(module: Any, mesh: Mesh, points: Iterable[Point]) -> Any:
    """Returns a copy of ``module`` with a constraint at each of ``points``, over axes of ``mesh``."""
    copy = copy_module(module)
    with copy.context, ir.Location.unknown():
        if NUM_PARTITIONS not in copy.operation.attributes:
            set_num_devices(copy, mesh.size)
        _Inserting(copy, mesh).all(points)
    return copy


class _Inserting:
    """Inserts constraints into one module. ``made``: constraints of operands by value, sharding and block, for
    reuse.
    """

    def __init__(self, module: Any, mesh: Mesh) -> None:
        self.module, self.mesh = module, mesh
        self.ops = dict(numbered_ops(module))
        self.notation = Notation(module, mesh)
        self.made: dict[tuple[Any, Spec, Any], Any] = {}

    def all(self, points: Iterable[Point]) -> None:
        """Inserts constraints at ``points``: first at definitions, then at operands, which refer to them."""
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
            made = self._constraint(value, point)
        value.replace_all_uses_except(made.results[0], [made])

    def _operand(self, point: Point) -> None:
        op = self.ops[point.spot.op]
        value = op.operands[point.spot.place]
        key = value, point.spec, operation(op.parent).regions[0] if op.block is None else op.block
        if key not in self.made:
            with ir.InsertionPoint(op), op.location:
                self.made[key] = self._constraint(value, point).results[0]
        op.operands[point.spot.place] = self.made[key]

    def _constraint(self, value: Any, point: Point) -> Any:
        return self.notation.constraint(value, Sharding.tiled(self.mesh, point.spec))
