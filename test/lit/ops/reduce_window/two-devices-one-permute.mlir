// case 2: windows of three over two devices: each needs one row of the other, and one permute brings both.
// RUN: shardpass-opt %s partition | FileCheck %s
// RUN: shardpass-run %s partition --devices 2 --check

// CHECK-LABEL: func.func @main(
// CHECK: "stablehlo.collective_permute"
// CHECK-SAME: tensor<2x2xi64>
// CHECK-SAME: (tensor<1x6xf32>) -> tensor<1x6xf32>
// CHECK-NOT: collective_permute
// CHECK-NOT: all_gather
module attributes {mhlo.num_partitions = 2 : i32} {
  func.func @main(%x: tensor<8x6xf32> {mhlo.sharding = "{devices=[2,1]<=[2]}"})
      -> (tensor<8x6xf32> {mhlo.sharding = "{devices=[2,1]<=[2]}"}) {
    %low = stablehlo.constant dense<0xFF800000> : tensor<f32>
    %0 = "stablehlo.reduce_window"(%x, %low) <{window_dimensions = array<i64: 3, 1>,
        padding = dense<[[1, 1], [0, 0]]> : tensor<2x2xi64>}> ({
    ^bb0(%a: tensor<f32>, %b: tensor<f32>):
      %m = stablehlo.maximum %a, %b : tensor<f32>
      stablehlo.return %m : tensor<f32>
    }) : (tensor<8x6xf32>, tensor<f32>) -> tensor<8x6xf32>
    return %0 : tensor<8x6xf32>
  }
}
