// case 2: windows of 3 rows, one row apart. Each device gets one row from each side; a sum's padding is zero, which is
// what a device without a neighbour receives. The tile of 4 rows becomes 6, and the local window is unpadded.
// RUN: shardpass-opt %s partition | FileCheck %s
// RUN: shardpass-run %s partition --devices 4 --check

// CHECK-LABEL: func.func @main(%arg0: tensor<4x1024xf32>
// CHECK-COUNT-2: "stablehlo.collective_permute"({{.*}}) <{{.*}} : (tensor<1x1024xf32>) -> tensor<1x1024xf32>
// CHECK: "stablehlo.reduce_window"
// CHECK-SAME: padding = dense<0> : tensor<2x2xi64>
// CHECK: (tensor<6x1024xf32>, tensor<f32>) -> tensor<4x1024xf32>
// CHECK-NOT: channel_handle
module attributes {mhlo.num_partitions = 4 : i32} {
  func.func @main(%x: tensor<16x1024xf32> {mhlo.sharding = "{devices=[4,1]<=[4]}"})
      -> (tensor<16x1024xf32> {mhlo.sharding = "{devices=[4,1]<=[4]}"}) {
    %zero = stablehlo.constant dense<0.0> : tensor<f32>
    %0 = "stablehlo.reduce_window"(%x, %zero) <{window_dimensions = array<i64: 3, 1>,
        padding = dense<[[1, 1], [0, 0]]> : tensor<2x2xi64>}> ({
    ^bb0(%a: tensor<f32>, %b: tensor<f32>):
      %s = stablehlo.add %a, %b : tensor<f32>
      stablehlo.return %s : tensor<f32>
    }) : (tensor<16x1024xf32>, tensor<f32>) -> tensor<16x1024xf32>
    return %0 : tensor<16x1024xf32>
  }
}
