// Beyond the array stands the initial value. Here that is 1 and not the sum's identity, so a device's neighbours could
// not stand for it: the dimension is not split. Its split moves to the columns and back, by an all_to_all each way.
// RUN: shardpass-opt %s partition | FileCheck %s
// RUN: shardpass-run %s partition --devices 4 --check

// CHECK-LABEL: func.func @main(%arg0: tensor<16x16xf32>
// CHECK-NOT: all_gather
// CHECK: "stablehlo.all_to_all"
// CHECK: "stablehlo.reduce_window"
// CHECK: (tensor<64x4xf32>, tensor<f32>) -> tensor<64x4xf32>
// CHECK: "stablehlo.all_to_all"
// CHECK-NOT: all_gather
// CHECK: return %{{.*}} : tensor<16x16xf32>
module attributes {mhlo.num_partitions = 4 : i32} {
  func.func @main(%x: tensor<64x16xf32> {mhlo.sharding = "{devices=[4,1]<=[4]}"})
      -> (tensor<64x16xf32> {mhlo.sharding = "{devices=[4,1]<=[4]}"}) {
    %one = stablehlo.constant dense<1.0> : tensor<f32>
    %0 = "stablehlo.reduce_window"(%x, %one) <{window_dimensions = array<i64: 3, 1>,
        padding = dense<[[1, 1], [0, 0]]> : tensor<2x2xi64>}> ({
    ^bb0(%a: tensor<f32>, %b: tensor<f32>):
      %1 = stablehlo.add %a, %b : tensor<f32>
      stablehlo.return %1 : tensor<f32>
    }) : (tensor<64x16xf32>, tensor<f32>) -> tensor<64x16xf32>
    return %0 : tensor<64x16xf32>
  }
}
