"""Ops without operands: constant and iota are made as tiles, whatever their split."""

from __future__ import annotations

from typing import Any

from jaxlib.mlir import ir
from jaxlib.mlir.dialects import stablehlo as hlo

from shardpass.ir.tensors import is_ranked, retype, shape_of, splat, splat_text
from shardpass.ops.local import Local
from shardpass.ops.registry import define_legacy
from shardpass.ops.splits.factors import Kind, Priority, Rule, RuleBuilder


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
    return _free(op, Kind.PARALLEL if splat_text(op) is not None else Kind.REPLICATED)


def localize_constant(local: Local) -> list[Any] | None:
    text = splat_text(local.op)
    if text is None or not any(local.result_dims[0]):
        return None
    with local.before():
        return [splat(retype(local.op.results[0].type, local.tile(0)), text)]


def localize_iota(local: Local) -> list[Any] | None:
    """Along a split dimension each device counts from its own offset."""
    op = local.op
    along = int(ir.IntegerAttr(op.attributes["iota_dimension"]).value)
    axes = local.result_dims[0][along]
    if not axes:
        return None
    kind = retype(op.results[0].type, local.tile(0))
    counts = ir.RankedTensorType.get(list(local.tile(0)), ir.IntegerType.get_signless(32))
    op.results[0].set_type(counts)  # counted in i32 and converted at the end: a narrow float would be rounded twice
    with local.after():
        start = local.start(axes, local.tile(0)[along])
        total = hlo.add(op.results[0], hlo.broadcast_in_dim(counts, start, ir.DenseI64ArrayAttr.get([])))
        return [hlo.convert(kind, total) if kind != counts else total]


define_legacy("stablehlo.constant", "constant_iota", constant, localize_constant)
define_legacy("stablehlo.iota", "constant_iota", _free, localize_iota)
