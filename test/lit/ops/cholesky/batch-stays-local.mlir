// A batch of matrices: each device decomposes its own. The matrices are made positive definite by 4 times the identity.
// RUN: shardpass-opt %s partition | FileCheck %s
// RUN: shardpass-run %s partition --devices 4 --check

// CHECK-LABEL: func.func @main(
// CHECK-NOT: channel_handle
// CHECK: stablehlo.cholesky %{{.*}}, lower = true : tensor<2x3x3xf32>
// CHECK-NOT: channel_handle
module attributes {mhlo.num_partitions = 4 : i32} {
  func.func @main(%x: tensor<8x3x3xf32> {mhlo.sharding = "{devices=[4,1,1]<=[4]}"}) -> tensor<8x3x3xf32> {
    %four = stablehlo.constant dense<[[4.0, 0.0, 0.0], [0.0, 4.0, 0.0], [0.0, 0.0, 4.0]]> : tensor<3x3xf32>
    %0 = stablehlo.broadcast_in_dim %four, dims = [1, 2] : (tensor<3x3xf32>) -> tensor<8x3x3xf32>
    %1 = stablehlo.add %x, %0 : tensor<8x3x3xf32>
    %2 = stablehlo.cholesky %1, lower = true : tensor<8x3x3xf32>
    return %2 : tensor<8x3x3xf32>
  }
}
