// A dimension that the slice takes whole is parallel: each device slices its columns, and nothing moves.
// RUN: shardpass-opt %s partition | FileCheck %s
// RUN: shardpass-run %s partition --devices 4 --check

// CHECK-LABEL: func.func @main(
// CHECK-NOT: channel_handle
// CHECK: stablehlo.dynamic_slice %arg0, {{.*}} sizes = [3, 2] : (tensor<16x2xf32>, tensor<i32>, tensor<i32>) -> tensor<3x2xf32>
// CHECK-NOT: channel_handle
module attributes {mhlo.num_partitions = 4 : i32} {
  func.func @main(%x: tensor<16x8xf32> {mhlo.sharding = "{devices=[1,4]<=[4]}"}, %at: tensor<i32>) -> tensor<3x8xf32> {
    %zero = stablehlo.constant dense<0> : tensor<i32>
    %0 = stablehlo.dynamic_slice %x, %at, %zero, sizes = [3, 8]
      : (tensor<16x8xf32>, tensor<i32>, tensor<i32>) -> tensor<3x8xf32>
    return %0 : tensor<3x8xf32>
  }
}
