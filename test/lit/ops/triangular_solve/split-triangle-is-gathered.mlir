// A triangle that is split over its rows is needed whole: it alone is gathered, over all devices.
// RUN: shardpass-opt %s partition | FileCheck %s
// RUN: shardpass-run %s partition --devices 4 --check

// CHECK-LABEL: func.func @main(
// CHECK: %[[TRIANGLE:.*]] = "stablehlo.all_gather"(%arg0)
// CHECK-SAME: (tensor<2x8xf32>) -> tensor<8x8xf32>
// CHECK-NOT: channel_handle
// CHECK: "stablehlo.triangular_solve"(%[[TRIANGLE]], %arg1)
// CHECK-SAME: (tensor<8x8xf32>, tensor<8x4xf32>) -> tensor<8x4xf32>
// CHECK-NOT: channel_handle
module attributes {mhlo.num_partitions = 4 : i32} {
  func.func @main(%a: tensor<8x8xf32> {mhlo.sharding = "{devices=[4,1]<=[4]}"},
      %b: tensor<8x16xf32> {mhlo.sharding = "{devices=[1,4]<=[4]}"}) -> tensor<8x16xf32> {
    %0 = "stablehlo.triangular_solve"(%a, %b) <{left_side = true, lower = true,
        transpose_a = #stablehlo<transpose NO_TRANSPOSE>, unit_diagonal = true}>
        : (tensor<8x8xf32>, tensor<8x16xf32>) -> tensor<8x16xf32>
    return %0 : tensor<8x16xf32>
  }
}
