"""Collectives that the user wrote, in a region that is manual over some axes of the mesh.

They run over the manual axes; the other axes may split their operands. all_reduce, collective_permute and
collective_broadcast work on each element by itself; the others rearrange some dimensions, which cannot be split then.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any

from jaxlib.mlir import ir

from shardpass.ir.tensors import shape_of
from shardpass.ops.families.elementwise import side_by_side
from shardpass.ops.model import OpModel, Pointwise, Shapes
from shardpass.ops.registry import define
from shardpass.ops.splits.factors import Kind, RuleBuilder

RUNS_ALONG = {
    "stablehlo.all_gather": ("all_gather_dim",),
    "stablehlo.reduce_scatter": ("scatter_dimension",),
    "stablehlo.all_to_all": ("split_dimension", "concat_dimension"),
}


def elementwise(op: Any) -> OpModel[Any]:
    """Pair result i with operand i, elementwise."""
    return side_by_side(op)


def rearranging(op: Any) -> OpModel[Any]:
    """Keep the dimensions along which the collective runs whole; the others are parallel."""
    along = frozenset(int(ir.IntegerAttr(op.attributes[name]).value) for name in RUNS_ALONG[op.name])
    return _rearranging(tuple(shape_of(v) for v in op.operands), tuple(shape_of(v) for v in op.results), along)


@lru_cache(maxsize=4096)
def _rearranging(sources: Shapes, targets: Shapes, along: frozenset[int]) -> Pointwise:
    build = RuleBuilder([len(s) for s in sources], [len(t) for t in targets])
    for index, (source, target) in enumerate(zip(sources, targets, strict=True)):
        for dim, size in enumerate(source):
            if dim in along:
                build.operand(index, dim, build.factor(size, Kind.REPLICATED))
                build.result(index, dim, build.factor(target[dim], Kind.REPLICATED))
            else:
                build.mapped(size, (index, dim), (index, dim))
    return Pointwise(build.build())


NOTE = "in regions that are manual over some axes: every dimension along which the collective does not work"
define(
    ["stablehlo.all_reduce", "stablehlo.collective_permute", "stablehlo.collective_broadcast"], elementwise, note=NOTE
)
define(RUNS_ALONG, rearranging, note=NOTE)
