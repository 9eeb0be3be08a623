"""Batch norms, expanded into sums and elementwise ops before propagation.

The formulas are those of the StableHLO specification. Training and grad need sums over every dimension but the
features'. Written out, these are ordinary reductions, so any dimension may be split: each device sums its part, an
all_reduce of one number a feature joins the parts, and padding is masked as for any other sum. Factors
that are one number a feature are computed before they are spread over the operand.

Elements of 16 bits are summed, and divided, as f32: the number of elements need not fit the narrow type, and partial
sums would lose digits. Results have the op's types.

Communication: training 2 all_reduces (the variance is of differences from the mean, which must be known first),
grad 2 that are ready at the same time, each of one number a feature.
"""

from __future__ import annotations

from math import prod
from typing import Any

from jaxlib.mlir import ir
from jaxlib.mlir.dialects import stablehlo as hlo

from shardpass.ir.tensors import i64_array, retype, shape_of
from shardpass.ops.families.replicated import unsplit
from shardpass.ops.registry import define
from shardpass.ops.tiles import positions as at
from shardpass.ops.tiles.summing import reduced_sum

NARROW = ("f16", "bf16")


def _decimal(number: float) -> str:
    """Format ``number`` as MLIR writes a float, exactly."""
    return f"{number:.17e}"


class _Features:
    """Builds the arithmetic of one op. ``like``: the operand's type, with the element type of sums."""

    def __init__(self, op: Any) -> None:
        kind = op.operands[0].type
        element = ir.F32Type.get() if str(kind.element_type) in NARROW else kind.element_type
        self.like = ir.RankedTensorType.get(list(kind.shape), element)
        self.feature = int(ir.IntegerAttr(op.attributes["feature_index"]).value)
        self.others = [d for d in range(kind.rank) if d != self.feature]
        self.count = prod(kind.shape[d] for d in self.others)  # elements of one feature
        self.epsilon = float(ir.FloatAttr(op.attributes["epsilon"]).value)

    def wide(self, value: Any) -> Any:
        kind = retype(self.like, shape_of(value))
        return value if value.type == kind else hlo.convert(kind, value)

    def spread(self, value: Any) -> Any:
        """Broadcast one number for each feature to all elements of the feature."""
        return hlo.broadcast_in_dim(self.like, value, i64_array([self.feature]))

    def sum(self, value: Any) -> Any:
        """Sum over all elements of each feature."""
        return reduced_sum(value, self.others)

    def mean(self, value: Any) -> Any:
        total = self.sum(value)
        return hlo.divide(total, at.splat(total.type, _decimal(self.count)))

    def deviation(self, variance: Any) -> tuple[Any, Any]:
        """Return the square root of the variance plus epsilon."""
        raised = hlo.add(variance, at.splat(variance.type, _decimal(self.epsilon)))
        return raised, hlo.sqrt(raised)

    def normalised(self, centered: Any, scale: Any, offset: Any, variance: Any) -> Any:
        normal = hlo.divide(centered, self.spread(self.deviation(variance)[1]))
        return hlo.add(hlo.multiply(self.spread(scale), normal), self.spread(offset))


def _typed(op: Any, values: list[Any]) -> list[Any]:
    return [
        value if value.type == result.type else hlo.convert(result.type, value)
        for value, result in zip(values, op.results, strict=True)
    ]


def inference(op: Any) -> list[Any]:
    """Normalise the operand by the given mean and variance."""
    about = _Features(op)
    x, scale, offset, mean, variance = map(about.wide, op.operands)
    centered = hlo.subtract(x, about.spread(mean))
    return _typed(op, [about.normalised(centered, scale, offset, variance)])


def training(op: Any) -> list[Any]:
    """Compute the normalised operand, and the mean and the variance of each feature."""
    about = _Features(op)
    x, scale, offset = map(about.wide, op.operands)
    mean = about.mean(x)
    centered = hlo.subtract(x, about.spread(mean))
    variance = about.mean(hlo.multiply(centered, centered))
    return _typed(op, [about.normalised(centered, scale, offset, variance), mean, variance])


def grad(op: Any) -> list[Any]:
    """Compute the gradients of the operand, the scale and the offset."""
    about = _Features(op)
    x, scale, mean, variance, upstream = map(about.wide, op.operands)
    raised, deviation = about.deviation(variance)
    centered = hlo.subtract(x, about.spread(mean))
    along, total = about.sum(hlo.multiply(upstream, centered)), about.sum(upstream)
    count = at.splat(scale.type, _decimal(about.count))
    mine = hlo.multiply(upstream, about.spread(count))
    rest = hlo.multiply(about.spread(hlo.divide(along, raised)), centered)
    inner = hlo.subtract(hlo.subtract(mine, about.spread(total)), rest)
    factor = hlo.divide(hlo.divide(scale, deviation), count)
    return _typed(op, [hlo.multiply(about.spread(factor), inner), hlo.divide(along, deviation), total])


_NOTE = "every dimension: sums and elementwise ops replace the op before propagation"
define("stablehlo.batch_norm_inference", unsplit, note=_NOTE, expand=inference)
define("stablehlo.batch_norm_training", unsplit, note=_NOTE, expand=training)
define("stablehlo.batch_norm_grad", unsplit, note=_NOTE, expand=grad)
