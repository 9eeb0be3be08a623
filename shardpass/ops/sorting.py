"""sort, top_k: dimensions that are not ordered are parallel.

* sort: the ordered dimension is needed whole on one device; the assignment moves its split to another dimension by an
  all_to_all where one divides.
* top_k along a split dimension: each device keeps its own k best, the candidates of all are gathered, and the best
  k of these are the answer. Equal elements keep their order (the lower position first): a tile's candidates keep it,
  and tiles are gathered in order. Positions of candidates are those in the whole array, found again through the
  position among the candidates.
"""

from __future__ import annotations

from typing import Any

from shardpass.ir.tensors import shape_of
from shardpass.ops.factors import Kind, Rule, RuleBuilder
from shardpass.ops.registry import define


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


define("stablehlo.sort", "sorting", sort)
