// The user's permute over the manual axis x: rows change places, columns stay split over the automatic axis y.
// RUN: shardpass-opt %s partition | FileCheck %s
// RUN: shardpass-run %s partition --devices 4 --check

// CHECK-LABEL: func.func @main(%arg0: tensor<4x4xf32>
// CHECK-NEXT: "stablehlo.collective_permute"(%arg0)
// CHECK-SAME{LITERAL}: source_target_pairs = dense<[[0, 2], [2, 0], [1, 3], [3, 1]]>
// CHECK-SAME: (tensor<4x4xf32>) -> tensor<4x4xf32>
// CHECK-NEXT: return
module attributes {mhlo.num_partitions = 4 : i32} {
  sdy.mesh @m = <["x"=2, "y"=2]>
  func.func @main(%a: tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@m, [{"x"}, {"y"}]>}) -> tensor<8x8xf32> {
    %0 = sdy.manual_computation(%a) in_shardings=[<@m, [{"x"}, {?}]>] out_shardings=[<@m, [{"x"}, {?}]>]
        manual_axes={"x"} (%t: tensor<4x8xf32>) {
      %1 = "stablehlo.collective_permute"(%t) <{channel_handle = #stablehlo.channel_handle<handle = 1, type = 1>,
          source_target_pairs = dense<[[0, 2], [2, 0], [1, 3], [3, 1]]> : tensor<4x2xi64>}>
          : (tensor<4x8xf32>) -> tensor<4x8xf32>
      sdy.return %1 : tensor<4x8xf32>
    } : (tensor<8x8xf32>) -> tensor<8x8xf32>
    return %0 : tensor<8x8xf32>
  }
}
