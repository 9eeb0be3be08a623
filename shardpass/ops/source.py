"""Ops without operands: constant and iota are made as tiles, whatever their split."""

from __future__ import annotations

from typing import Any

from jaxlib.mlir import ir
from jaxlib.mlir.dialects import stablehlo as hlo

from shardpass.ir.tensors import is_ranked, retype, shape_of
from shardpass.ops.factors import Kind, Priority, Rule, RuleBuilder
from shardpass.ops.local import Local
from shardpass.ops.registry import define


def _free(op: Any, kind: Kind = Kind.PARALLEL) -> Rule | None:
    if not is_ranked(op.results[0]):
        return None
    shape = shape_of(op.results[0])
    build = RuleBuilder([], [len(shape)])
    for dim, size in enumerate(shape):
        build.result(0, dim, build.factor(size, kind))
    return build.build(Priority.EXPANSION)


def constant(op: Any) -> Rule | None:
    """A splat is a splat on every tile; other constants are held whole and sliced where a tile is needed."""
    return _free(op, Kind.PARALLEL if op.attributes["value"].is_splat else Kind.REPLICATED)


def localize_constant(local: Local) -> None:
    value = ir.DenseElementsAttr(local.op.attributes["value"])
    if any(local.result_dims[0]):
        kind = retype(local.op.results[0].type, local.tile(0))
        local.op.attributes["value"] = ir.DenseElementsAttr.get_splat(kind, value.get_splat_value())


def localize_iota(local: Local) -> list[Any] | None:
    """Along a split dimension each device counts from its own offset."""
    op = local.op
    along = int(ir.IntegerAttr(op.attributes["iota_dimension"]).value)
    axes = local.result_dims[0][along]
    if not axes:
        return None
    tile = local.tile(0)
    kind = retype(op.results[0].type, tile)
    op.results[0].set_type(kind)
    with local.after():
        start = local.start(axes, tile[along])
        if start.type.element_type != kind.element_type:
            start = hlo.convert(ir.RankedTensorType.get([], kind.element_type), start)
        shift = hlo.broadcast_in_dim(kind, start, ir.DenseI64ArrayAttr.get([]))
        return [hlo.add(op.results[0], shift)]


define("stablehlo.constant", "source", constant, localize_constant)
define("stablehlo.iota", "source", _free, localize_iota)
