"""Compute max and min across devices on floats as ordered integers, which keeps NaN.

Problem. XLA's CPU client reduces across devices with a plain comparison, which a NaN loses, or wins, by its position:
``max(NaN, 1, 2, 3)`` is 3 on four devices and NaN on one. StableHLO says NaN. Its collectives of integers have no such
case.

Solution. A float is read as a signed integer of the same width; of a negative one all bits but the sign are inverted
(``_ordered``, which is its own inverse). So -inf < -1 < -0 < +0 < 1 < inf become integers in that order. A NaN becomes
the integer of a quiet NaN beyond the infinity that the reduction prefers: above +inf for max, below -inf for min. It
wins, and reading the integer as a float again gives a NaN.

Example, f32 max of 1.0 = 0x3F800000, -0.0 = 0x80000000 and NaN: the integers are 0x3F800000, -1 and 0x7FC00000; the
greatest is 0x7FC00000, a NaN.

Invariants. The collective stays as it is but for the type of its elements, which is as wide; its attributes too.

Cost: one walk; for each such collective a dozen elementwise ops, which XLA fuses into one loop before it and one after.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from jaxlib.mlir import ir
from jaxlib.mlir.dialects import stablehlo as hlo

from shardpass.diagnostics import report
from shardpass.diagnostics.table_passes import NAN_TYPE
from shardpass.element_types import element_type
from shardpass.ir.locations import place_of
from shardpass.ir.tensors import shape_of, splat
from shardpass.ir.walk import named, operation, read_blocks
from shardpass.ops.reducers import combiner_of

REDUCTIONS = ("stablehlo.all_reduce", "stablehlo.reduce_scatter")
EXTREMES = ("maximum", "minimum")
# A quiet NaN of each type, as an integer.
QUIET_NAN: Mapping[str, int] = {"f16": 0x7E00, "bf16": 0x7FC0, "f32": 0x7FC00000, "f64": 0x7FF8000000000000}


def keep_nan(module: Any) -> bool:
    """Rewrite the max and min collectives of ``module`` in place; returns whether there were any.

    Reports SP315 of floats that stay as they are.
    """
    changed = False
    with ir.Location.unknown(module.context):
        for op in filter(takes_float_extreme, named(read_blocks(module.operation), REDUCTIONS)):
            element = op.operands[0].type.element_type
            if str(element) in QUIET_NAN:
                _as_integers(op, str(element))
                changed = True
            else:
                report(NAN_TYPE.at(place_of(op.location), op=op.name, type=element))
    return changed


def takes_float_extreme(op: Any) -> bool:
    """Return whether ``op`` takes the max or min of floats across devices."""
    if op.name not in REDUCTIONS or combiner_of(op) not in EXTREMES:
        return False
    return isinstance(op.operands[0].type.element_type, ir.FloatType)


def _as_integers(op: Any, element: str) -> None:
    """Replace ``op`` by a collective of integers, converting its operand and its result."""
    bits, quiet = element_type(element).bits, QUIET_NAN[element]
    winner = quiet if combiner_of(op) == "maximum" else ~quiet
    integer = ir.IntegerType.get_signless(bits)
    with ir.InsertionPoint(op), op.location:
        floats = op.operands[0]
        is_nan = hlo.compare(floats, floats, hlo.ComparisonDirectionAttr.get("NE"))
        ordered = _ordered(hlo.bitcast_convert(_of(floats, integer), floats), bits)
        joined = operation(op.clone())
        joined.operands[0] = hlo.select(is_nan, splat(ordered.type, winner), ordered)
        body = joined.regions[0].blocks[0]
        for value in (*joined.results, *body.arguments, *body.operations[0].results):
            value.set_type(_of(value, integer))
        joined.move_after(operation(joined.operands[0].owner))
        back = hlo.bitcast_convert(op.results[0].type, _ordered(joined.results[0], bits))
    op.results[0].replace_all_uses_with(back)
    op.erase()


def _of(value: Any, element: Any) -> Any:
    """Return the type of ``value`` with another element type."""
    return ir.RankedTensorType.get(list(shape_of(value)), element)


def _ordered(value: Any, bits: int) -> Any:
    """Invert all bits except the sign in negative elements of ``value``."""
    negative = hlo.shift_right_arithmetic(value, splat(value.type, bits - 1))  # all bits, or none
    return hlo.xor(value, hlo.and_(negative, splat(value.type, 2 ** (bits - 1) - 1)))
