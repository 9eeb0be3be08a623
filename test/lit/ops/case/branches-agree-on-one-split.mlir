// All branches return the same split of the result. Only the branch that reverses rows across tiles communicates.
// RUN: shardpass-opt %s partition | FileCheck %s
// RUN: shardpass-run %s partition --devices 4 --check

// CHECK-LABEL: func.func @main(
// CHECK-NOT: channel_handle
// CHECK: "stablehlo.case"(%arg0) ({
// CHECK: stablehlo.negate %arg1 : tensor<2x4xf32>
// CHECK: stablehlo.return %arg1 : tensor<2x4xf32>
// CHECK: stablehlo.reverse %arg1, dims = [0] : tensor<2x4xf32>
// CHECK: "stablehlo.collective_permute"
// CHECK-SAME{LITERAL}: source_target_pairs = dense<[[3, 0], [2, 1], [1, 2], [0, 3]]>
// CHECK-NOT: channel_handle
module attributes {mhlo.num_partitions = 4 : i32} {
  func.func @main(%i: tensor<i32>, %x: tensor<8x4xf32> {mhlo.sharding = "{devices=[4,1]<=[4]}"})
      -> (tensor<8x4xf32> {mhlo.sharding = "{devices=[4,1]<=[4]}"}) {
    %0 = "stablehlo.case"(%i) ({
      %1 = stablehlo.negate %x : tensor<8x4xf32>
      stablehlo.return %1 : tensor<8x4xf32>
    }, {
      stablehlo.return %x : tensor<8x4xf32>
    }, {
      %1 = stablehlo.reverse %x, dims = [0] : tensor<8x4xf32>
      stablehlo.return %1 : tensor<8x4xf32>
    }) : (tensor<i32>) -> tensor<8x4xf32>
    return %0 : tensor<8x4xf32>
  }
}
