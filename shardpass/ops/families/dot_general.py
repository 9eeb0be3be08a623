"""dot_general: batching and free dimensions are parallel, contracting ones leave partial sums."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

from jaxlib.mlir.dialects import stablehlo as hlo

from shardpass.ir.tensors import ints, shape_of
from shardpass.ops.model import OpModel, Pointwise, Shape, Shapes
from shardpass.ops.registry import define
from shardpass.ops.splits.factors import Kind, Priority, RuleBuilder

Dims = tuple[Shape, Shape]  # dimensions of the left and of the right operand


def dot_general(op: Any) -> OpModel[Any]:
    numbers = hlo.DotDimensionNumbers(op.attributes["dot_dimension_numbers"])
    batch = (ints(numbers.lhs_batching_dimensions), ints(numbers.rhs_batching_dimensions))
    contract = (ints(numbers.lhs_contracting_dimensions), ints(numbers.rhs_contracting_dimensions))
    return _dot_general(tuple(shape_of(operand) for operand in op.operands), batch, contract)


@lru_cache(maxsize=4096)
def _dot_general(shapes: Shapes, batch: Dims, contract: Dims) -> Pointwise:
    """Build the rule. Result dimensions: batching, then free ones of the left, then of the right operand."""
    ranks = [len(shape) for shape in shapes]
    build = RuleBuilder(ranks, [sum(ranks) - len(batch[0]) - 2 * len(contract[0])])
    out = 0
    for left, right in zip(*batch, strict=True):
        factor = build.factor(shapes[0][left])
        build.operand(0, left, factor)
        build.operand(1, right, factor)
        build.result(0, out, factor)
        out += 1
    for left, right in zip(*contract, strict=True):
        factor = build.factor(shapes[0][left], Kind.REDUCTION)
        build.operand(0, left, factor)
        build.operand(1, right, factor)
    for side in (0, 1):
        for dim, size in enumerate(shapes[side]):
            if dim not in batch[side] and dim not in contract[side]:
                build.mapped(size, (side, dim), (0, out))
                out += 1
    return Pointwise(build.build(Priority.CONTRACTION, "add"))


define("stablehlo.dot_general", dot_general, note="batching and free dimensions; contracting dimensions (partial sums)")
