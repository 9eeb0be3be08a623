// Queries, keys and values are split alike, and so is the result: scores could be split along either. Along the keys the
// second product would leave partial sums; along the queries nothing is summed. That a later sum joins the rows of what
// the user fixed does not count: its split is decided.
// RUN: shardpass-opt %s 'shardpass-import,shardpass-propagate' | FileCheck %s

module attributes {mhlo.num_partitions = 4 : i32} {
  // CHECK-LABEL: func.func @main(
  // CHECK: %[[SCORES:.*]] = stablehlo.dot_general {{.*}} {mhlo.sharding = "{devices=[4,1]<=[4]}"} : {{.*}} -> tensor<16x16xf32>
  // CHECK: %[[WEIGHTS:.*]] = stablehlo.exponential %[[SCORES]] {mhlo.sharding = "{devices=[4,1]<=[4]}"}
  // CHECK: stablehlo.dot_general %[[WEIGHTS]]{{.*}} {mhlo.sharding = "{devices=[4,1]<=[4]}"}
  func.func @main(
      %x: tensor<16x8xf32> {mhlo.sharding = "{devices=[4,1]<=[4]}"}, %wq: tensor<8x8xf32>, %wk: tensor<8x8xf32>) -> tensor<8xf32> {
    %qt = stablehlo.dot_general %wq, %x, contracting_dims = [0] x [1] : (tensor<8x8xf32>, tensor<16x8xf32>) -> tensor<8x16xf32>
    %q = stablehlo.transpose %qt, dims = [1, 0] : (tensor<8x16xf32>) -> tensor<16x8xf32>
    %kt = stablehlo.dot_general %wk, %x, contracting_dims = [0] x [1] : (tensor<8x8xf32>, tensor<16x8xf32>) -> tensor<8x16xf32>
    %k = stablehlo.transpose %kt, dims = [1, 0] : (tensor<8x16xf32>) -> tensor<16x8xf32>
    %0 = stablehlo.dot_general %q, %k, contracting_dims = [1] x [1] : (tensor<16x8xf32>, tensor<16x8xf32>) -> tensor<16x16xf32>
    %1 = stablehlo.exponential %0 : tensor<16x16xf32>
    %2 = stablehlo.dot_general %1, %x, contracting_dims = [1] x [0] : (tensor<16x16xf32>, tensor<16x8xf32>) -> tensor<16x8xf32>
    %3 = stablehlo.custom_call @Sharding(%2) {mhlo.sharding = "{devices=[4,1]<=[4]}"} : (tensor<16x8xf32>) -> tensor<16x8xf32>
    %4 = stablehlo.abs %3 : tensor<16x8xf32>
    %zero = stablehlo.constant dense<0.0> : tensor<f32>
    %5 = stablehlo.reduce(%4 init: %zero) applies stablehlo.add across dimensions = [0] : (tensor<16x8xf32>, tensor<f32>) -> tensor<8xf32>
    return %5 : tensor<8xf32>
  }
}
