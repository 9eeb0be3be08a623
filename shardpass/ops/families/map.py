"""map and get_dimension_size."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from shardpass.ir.tensors import shape_of
from shardpass.ops.families.elementwise import pointwise
from shardpass.ops.model import LocalPlan, OpModel, Site, Split
from shardpass.ops.registry import define
from shardpass.ops.splits.factors import Rule, RuleBuilder
from shardpass.ops.tiles import positions as at


def map_(op: Any) -> OpModel[Any] | None:
    """Make every dimension parallel: the op is elementwise, and its operands have one shape."""
    return pointwise(op)


@dataclass(frozen=True, eq=False)
class GetDimensionSize(OpModel[LocalPlan]):
    """Replaces the op by a constant: the size of the whole array is known. Every operand dimension may be split."""

    rule: Rule
    size: int

    def plan(self, split: Split) -> LocalPlan:
        return LocalPlan(split, ignored=frozenset({0}))

    def emit(self, plan: LocalPlan, site: Site) -> Sequence[Any]:
        site.discard()
        with site.after():
            return [at.splat(site.op.results[0].type, self.size)]


def get_dimension_size(op: Any) -> OpModel[Any]:
    shape = shape_of(op.operands[0])
    build = RuleBuilder([len(shape)], [0])
    for dim, size in enumerate(shape):
        build.operand(0, dim, build.factor(size))
    return GetDimensionSize(build.build(), shape[int(op.attributes["dimension"])])


define("stablehlo.map", map_, note="every dimension")
define(
    "stablehlo.get_dimension_size",
    get_dimension_size,
    note="every dimension of the operand: the size of the whole array is known",
)
