"""``shardpass-keep-nan``: max and min across devices that keep NaN, by comparing floats as ordered integers.

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
from dataclasses import dataclass
from typing import Any

from jaxlib.mlir import ir
from jaxlib.mlir.dialects import stablehlo as hlo

from shardpass.diagnostics import report
from shardpass.diagnostics.table_passes import NAN_CHOICE, NAN_TYPE
from shardpass.element_types import element_type
from shardpass.ir.locations import place_of
from shardpass.ir.tensors import shape_of, splat
from shardpass.ir.walk import named, operation, read_blocks
from shardpass.ops.reducers import combiner_of
from shardpass.pipeline.base import ModulePass
from shardpass.pipeline.registry import register

AS_XLA, EXACT = "xla", "exact"
CHOICES = (AS_XLA, EXACT)
REDUCTIONS = ("stablehlo.all_reduce", "stablehlo.reduce_scatter")
EXTREMES = ("maximum", "minimum")
# A quiet NaN of each type, as an integer.
QUIET_NAN: Mapping[str, int] = {"f16": 0x7E00, "bf16": 0x7FC0, "f32": 0x7FC00000, "f64": 0x7FF8000000000000}


@register
@dataclass(frozen=True)
class KeepNan(ModulePass):
    """Keeps NaN where all_reduce and reduce_scatter take the max or min of floats.

    XLA's CPU client loses some NaN there, which StableHLO keeps. With ``nan=exact`` the elements travel as integers that
    are in the order of the floats, with NaN at the winning end. Of zeros +0 is greater than -0 then, as on one device.
    The collectives are the same, and send as many bytes; one elementwise loop more runs before each of them and one
    after it. (XLA for GPUs sends 16-bit integers as 32-bit ones, so f16 and bf16 take twice the bytes there.) Of f16,
    bf16, f32 and f64; a remark names collectives of other floats, which stay as they are.

    Options:
        nan: "xla": max and min across devices treat NaN as XLA does; "exact": they keep NaN

    Input:

        func.func @main(%x: tensor<8xf32>) -> tensor<8xf32> {
          %0 = "stablehlo.all_reduce"(%x) <{channel_handle = #stablehlo.channel_handle<handle = 1, type = 1>, replica_groups = dense<[[0, 1]]> : tensor<1x2xi64>, use_global_device_ids}> ({
          ^bb0(%a: tensor<f32>, %b: tensor<f32>):
            %m = stablehlo.maximum %a, %b : tensor<f32>
            stablehlo.return %m : tensor<f32>
          }) : (tensor<8xf32>) -> tensor<8xf32>
          return %0 : tensor<8xf32>
        }

    Output:

        func.func @main(%arg0: tensor<8xf32>) -> tensor<8xf32> {
          %0 = stablehlo.compare NE, %arg0, %arg0 : (tensor<8xf32>, tensor<8xf32>) -> tensor<8xi1>
          %1 = stablehlo.bitcast_convert %arg0 : (tensor<8xf32>) -> tensor<8xi32>
          %c = stablehlo.constant dense<31> : tensor<8xi32>
          %2 = stablehlo.shift_right_arithmetic %1, %c : tensor<8xi32>
          %c_0 = stablehlo.constant dense<2147483647> : tensor<8xi32>
          %3 = stablehlo.and %2, %c_0 : tensor<8xi32>
          %4 = stablehlo.xor %1, %3 : tensor<8xi32>
          %c_1 = stablehlo.constant dense<2143289344> : tensor<8xi32>
          %5 = stablehlo.select %0, %c_1, %4 : tensor<8xi1>, tensor<8xi32>
          %6 = "stablehlo.all_reduce"(%5) <{channel_handle = #stablehlo.channel_handle<handle = 1, type = 1>, replica_groups = dense<[[0, 1]]> : tensor<1x2xi64>, use_global_device_ids}> ({
          ^bb0(%arg1: tensor<i32>, %arg2: tensor<i32>):
            %11 = stablehlo.maximum %arg1, %arg2 : tensor<i32>
            stablehlo.return %11 : tensor<i32>
          }) : (tensor<8xi32>) -> tensor<8xi32>
          %c_2 = stablehlo.constant dense<31> : tensor<8xi32>
          %7 = stablehlo.shift_right_arithmetic %6, %c_2 : tensor<8xi32>
          %c_3 = stablehlo.constant dense<2147483647> : tensor<8xi32>
          %8 = stablehlo.and %7, %c_3 : tensor<8xi32>
          %9 = stablehlo.xor %6, %8 : tensor<8xi32>
          %10 = stablehlo.bitcast_convert %9 : (tensor<8xi32>) -> tensor<8xf32>
          return %10 : tensor<8xf32>
        }
    """  # noqa: E501  IR is not wrapped

    name = "shardpass-keep-nan"
    example = "{nan=exact}"
    summary = "max and min across devices keep NaN (off unless asked for)"

    nan: str = AS_XLA

    def run(self, module: Any) -> bool:
        if self.nan not in CHOICES:
            raise NAN_CHOICE.error(value=self.nan, known=", ".join(CHOICES))
        if self.nan == AS_XLA:
            return False
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
    """Whether ``op`` takes the max or min of floats across devices."""
    if op.name not in REDUCTIONS or combiner_of(op) not in EXTREMES:
        return False
    return isinstance(op.operands[0].type.element_type, ir.FloatType)


def _as_integers(op: Any, element: str) -> None:
    """Replaces ``op`` by a collective of integers, with conversions of its operand before it and its result behind."""
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
    """The type of ``value`` with another element."""
    return ir.RankedTensorType.get(list(shape_of(value)), element)


def _ordered(value: Any, bits: int) -> Any:
    """``value`` with all bits but the sign inverted where it is negative."""
    negative = hlo.shift_right_arithmetic(value, splat(value.type, bits - 1))  # all bits, or none
    return hlo.xor(value, hlo.and_(negative, splat(value.type, 2 ** (bits - 1) - 1)))
