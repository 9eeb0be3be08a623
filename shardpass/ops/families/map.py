"""map, get_dimension_size: what is said of each element, or of the shape alone."""

from __future__ import annotations

from typing import Any

from shardpass.ir.tensors import shape_of
from shardpass.ops.local import Local
from shardpass.ops.registry import define
from shardpass.ops.splits.factors import Rule, RuleBuilder
from shardpass.ops.tiles import positions as at


def map_(op: Any) -> Rule | None:
    """Every dimension: the op is elementwise, and its operands have one shape."""
    shape = shape_of(op.results[0])
    count = len(op.operands)
    build = RuleBuilder([len(shape)] * count, [len(shape)])
    for dim, size in enumerate(shape):
        factor = build.factor(size)
        build.result(0, dim, factor)
        for index in range(count):
            build.operand(index, dim, factor)
    return build.build()


def get_dimension_size(op: Any) -> Rule | None:
    """Every dimension of the operand: the size of the whole array is known."""
    shape = shape_of(op.operands[0])
    build = RuleBuilder([len(shape)], [0])
    for dim, size in enumerate(shape):
        build.operand(0, dim, build.factor(size))
    return build.build()


def localize_get_dimension_size(local: Local) -> list[Any]:
    dim = int(local.op.attributes["dimension"])
    with local.after():
        return [at.splat(local.op.results[0].type, local.operand_shapes[0][dim])]


define("stablehlo.map", "map", map_)
define("stablehlo.get_dimension_size", "map", get_dimension_size, localize_get_dimension_size)
