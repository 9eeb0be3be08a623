// case 3: a cumulative sum along a split dimension: tiles are scanned, one total of each is gathered.
// RUN: shardpass-opt %s partition | FileCheck %s
// RUN: shardpass-run %s partition --devices 4 --check

// CHECK-LABEL: func.func @main(
// CHECK: "stablehlo.reduce_window"
// CHECK-SAME: window_dimensions = array<i64: 4, 1>
// CHECK: (tensor<4x1024xf32>, tensor<f32>) -> tensor<4x1024xf32>
// CHECK: "stablehlo.all_gather"({{.*}}(tensor<1x1024xf32>) -> tensor<4x1024xf32>
// CHECK: stablehlo.reduce(
// CHECK-NOT: "stablehlo.all_gather"
module attributes {mhlo.num_partitions = 4 : i32} {
  func.func @main(%x: tensor<16x1024xf32> {mhlo.sharding = "{devices=[4,1]<=[4]}"})
      -> (tensor<16x1024xf32> {mhlo.sharding = "{devices=[4,1]<=[4]}"}) {
    %z = stablehlo.constant dense<0.0> : tensor<f32>
    %0 = "stablehlo.reduce_window"(%x, %z) <{window_dimensions = array<i64: 16, 1>,
        padding = dense<[[15, 0], [0, 0]]> : tensor<2x2xi64>}> ({
    ^bb0(%a: tensor<f32>, %b: tensor<f32>):
      %1 = stablehlo.add %a, %b : tensor<f32>
      stablehlo.return %1 : tensor<f32>
    }) : (tensor<16x1024xf32>, tensor<f32>) -> tensor<16x1024xf32>
    return %0 : tensor<16x1024xf32>
  }
}
