"""dot_general: batching and free dimensions are parallel, contracting ones leave partial sums."""

from __future__ import annotations

from typing import Any

from jaxlib.mlir.dialects import stablehlo as hlo

from shardpass.ir.tensors import ints, shape_of
from shardpass.ops.registry import define_legacy
from shardpass.ops.splits.factors import Kind, Priority, Rule, RuleBuilder


def dot_general(op: Any) -> Rule | None:
    """Result dimensions: batching, then the free ones of the left, then of the right operand."""
    numbers = hlo.DotDimensionNumbers(op.attributes["dot_dimension_numbers"])
    batch = (ints(numbers.lhs_batching_dimensions), ints(numbers.rhs_batching_dimensions))
    contract = (ints(numbers.lhs_contracting_dimensions), ints(numbers.rhs_contracting_dimensions))
    shapes = [shape_of(operand) for operand in op.operands]
    build = RuleBuilder([len(s) for s in shapes], [len(shape_of(op.results[0]))])
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
                factor = build.factor(size)
                build.operand(side, dim, factor)
                build.result(0, out, factor)
                out += 1
    return build.build(Priority.CONTRACTION, "add")


define_legacy("stablehlo.dot_general", "dot_general", dot_general)
