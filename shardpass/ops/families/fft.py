"""fft: a transform over all dimensions is written as two before propagation, so that a dimension can be split.

Problem. A transform needs the dimensions that it works on whole, so one over all dimensions of an array would be
computed whole on every device. But a transform over several dimensions is one over some of them, and then over the
others: with rows split, a device transforms the columns of its rows; an exchange gives each device some columns; it
transforms these along the rows; and an exchange brings the rows back. On 8 devices that receives a quarter of what
gathering the array does, for an eighth of the work.

Cases, over dimensions 0 to k - 1 of an array without a batch:

1. FFT, IFFT: over the dimensions from 1 on, then over dimension 0. An inverse divides by the lengths of its own part.
2. RFFT: from real numbers over the dimensions from 1 on, then FFT over dimension 0.
3. IRFFT: IFFT over dimension 0 first, then to real numbers over the dimensions from 1 on.

StableHLO transforms the last dimensions, so dimension 0 is brought there and back; the transposes are of tiles.
An array with a batch, or of fewer than ``LEAST`` elements, keeps its op: the batch is split, or latency decides.

O(1) ops an op.
"""

from __future__ import annotations

from math import prod
from typing import Any

from jaxlib.mlir.dialects import stablehlo as hlo

from shardpass.ir.tensors import i64_array, ints, retype, shape_of
from shardpass.ops.families.custom_call import leading
from shardpass.ops.model import OpModel, Pointwise
from shardpass.ops.registry import define

LEAST = 2**12  # elements
_REAL = {"RFFT": "FFT", "IRFFT": "IFFT"}  # what the other dimensions are transformed by


def fft(op: Any) -> OpModel[Any] | None:
    """Make the dimensions that are not transformed a batch."""
    rule = leading(op, len(shape_of(op.operands[0])) - len(ints(op.attributes["fft_length"])))
    return None if rule is None else Pointwise(rule)


def in_two(op: Any) -> list[Any] | None:
    """Expand a large transform of several dimensions into two: over dimension 0, then over the other dimensions.

    Returns None for any other transform.
    """
    (operand,), lengths = op.operands, ints(op.attributes["fft_length"])
    kind = op.results[0].type
    batch = shape_of(operand)[: kind.rank - len(lengths)]
    if len(lengths) < 2 or prod(batch) > 1 or max(prod(shape_of(operand)), prod(kind.shape)) < LEAST:
        return None
    how = hlo.FftTypeAttr(op.attributes["fft_type"]).value
    first = len(batch)
    if how == "IRFFT":
        return [_transform(kind, _along(operand, first, "IFFT"), how, lengths[1:])]
    rest = _transform(kind, operand, how, lengths[1:])
    return [_along(rest, first, _REAL.get(how, how))]


def _transform(kind: Any, value: Any, how: str, lengths: tuple[int, ...]) -> Any:
    return hlo.fft(value, hlo.FftTypeAttr.get(how), i64_array(lengths), results=[kind])


def _along(value: Any, dim: int, how: str) -> Any:
    """Transform the complex ``value`` along ``dim``."""
    order = [*(d for d in range(value.type.rank) if d != dim), dim]
    back = [order.index(d) for d in range(value.type.rank)]
    shape = shape_of(value)
    last = hlo.transpose(value, i64_array(order))
    made = _transform(retype(value.type, [shape[d] for d in order]), last, how, (shape[dim],))
    return hlo.transpose(made, i64_array(back))


define(
    "stablehlo.fft",
    fft,
    expand=in_two,
    note="every dimension that is not transformed, and of a transform over all "
    "dimensions every one, one after the other",
    sends="exchanges, where all dimensions are transformed",
)
