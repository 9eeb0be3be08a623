"""``shardpass-keep-nan``: keeps NaN in max and min across devices, with ``partition.keep_nan``."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from shardpass.diagnostics.table_passes import NAN_CHOICE
from shardpass.partition.keep_nan import keep_nan
from shardpass.pipeline.base import ModulePass
from shardpass.pipeline.registry import register

AS_XLA, EXACT = "xla", "exact"
CHOICES = (AS_XLA, EXACT)


@register
@dataclass(frozen=True)
class KeepNan(ModulePass):
    """Keeps NaN where all_reduce and reduce_scatter take the max or min of floats.

    XLA's CPU client loses some NaN in these collectives, which StableHLO keeps. With ``nan=exact`` the elements are
    sent as integers in the order of the floats, with NaN as the greatest (for min, the least). +0 is then greater than
    -0, as on one device. The collectives are the same and send as many bytes, with one more elementwise loop before and
    one after each. (XLA for GPUs sends 16-bit integers as 32-bit integers, so f16 and bf16 take twice the bytes there.)
    Supports f16, bf16, f32 and f64; collectives of other floats are unchanged, and a remark names them.

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
        return keep_nan(module)
