// A padded dimension is not split: what stands for padding on a tile must never be selected, and no value is sure to
// lose. The split moves to the columns, which have windows of one element, and back.
// RUN: shardpass-opt %s partition | FileCheck %s
// RUN: shardpass-run %s partition --devices 4 --check

// CHECK-LABEL: func.func @main(%arg0: tensor<16x16xf32>
// CHECK-NOT: all_gather
// CHECK: "stablehlo.all_to_all"
// CHECK: "stablehlo.all_to_all"
// CHECK: "stablehlo.select_and_scatter"
// CHECK: (tensor<64x4xf32>, tensor<64x4xf32>, tensor<f32>) -> tensor<64x4xf32>
// CHECK: "stablehlo.all_to_all"
// CHECK-NOT: all_gather
// CHECK: return %{{.*}} : tensor<16x16xf32>
module attributes {mhlo.num_partitions = 4 : i32} {
  func.func @main(%x: tensor<64x16xf32> {mhlo.sharding = "{devices=[4,1]<=[4]}"},
      %s: tensor<64x16xf32> {mhlo.sharding = "{devices=[4,1]<=[4]}"})
      -> (tensor<64x16xf32> {mhlo.sharding = "{devices=[4,1]<=[4]}"}) {
    %zero = stablehlo.constant dense<0.0> : tensor<f32>
    %0 = "stablehlo.select_and_scatter"(%x, %s, %zero) <{window_dimensions = array<i64: 3, 1>,
        padding = dense<[[1, 1], [0, 0]]> : tensor<2x2xi64>}> ({
    ^bb0(%a: tensor<f32>, %b: tensor<f32>):
      %1 = stablehlo.compare GE, %a, %b : (tensor<f32>, tensor<f32>) -> tensor<i1>
      stablehlo.return %1 : tensor<i1>
    }, {
    ^bb0(%a: tensor<f32>, %b: tensor<f32>):
      %1 = stablehlo.add %a, %b : tensor<f32>
      stablehlo.return %1 : tensor<f32>
    }) : (tensor<64x16xf32>, tensor<64x16xf32>, tensor<f32>) -> tensor<64x16xf32>
    return %0 : tensor<64x16xf32>
  }
}
