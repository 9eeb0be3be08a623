"""Ops that pick along a dimension: dynamic_slice, dynamic_update_slice, sort.

A dimension that the op takes whole is parallel; the one it picks along is needed whole on every device.
"""

from __future__ import annotations

from typing import Any

from shardpass.ir.tensors import i64_array, shape_of
from shardpass.ops.factors import Kind, Rule, RuleBuilder
from shardpass.ops.local import Local
from shardpass.ops.registry import define


def dynamic_slice(op: Any) -> Rule | None:
    """Where the slice is as long as the dimension its start is clamped to 0, so the dimension is parallel."""
    source, target = shape_of(op.operands[0]), shape_of(op.results[0])
    build = RuleBuilder([len(source), *([0] * len(source))], [len(target)])
    for dim, (size, part) in enumerate(zip(source, target, strict=True)):
        if size == part:
            factor = build.factor(size)
            build.operand(0, dim, factor)
            build.result(0, dim, factor)
        else:
            build.operand(0, dim, build.factor(size, Kind.REPLICATED))
            build.result(0, dim, build.factor(part, Kind.REPLICATED))
    return build.build()


def localize_dynamic_slice(local: Local) -> None:
    local.op.attributes["slice_sizes"] = i64_array(local.tile(0))


def dynamic_update_slice(op: Any) -> Rule | None:
    """As dynamic_slice: a dimension that the update fills is parallel."""
    target, update = shape_of(op.operands[0]), shape_of(op.operands[1])
    build = RuleBuilder([len(target), len(update), *([0] * len(target))], [len(target)])
    for dim, (size, part) in enumerate(zip(target, update, strict=True)):
        kind = Kind.PARALLEL if size == part else Kind.REPLICATED
        factor = build.factor(size, kind)
        build.operand(0, dim, factor)
        build.result(0, dim, factor)
        build.operand(1, dim, factor if size == part else build.factor(part, kind))
    return build.build()


def sort(op: Any) -> Rule | None:
    shapes = [shape_of(operand) for operand in op.operands]
    along = int(op.attributes["dimension"])
    build = RuleBuilder([len(s) for s in shapes], [len(s) for s in shapes])
    for dim, size in enumerate(shapes[0]):
        factor = build.factor(size, Kind.REPLICATED if dim == along else Kind.PARALLEL)
        for index in range(len(shapes)):
            build.operand(index, dim, factor)
            build.result(index, dim, factor)
    return build.build()


define("stablehlo.dynamic_slice", "indexing", dynamic_slice, localize_dynamic_slice)
define("stablehlo.dynamic_update_slice", "indexing", dynamic_update_slice)
define("stablehlo.sort", "indexing", sort)
