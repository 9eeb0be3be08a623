// The gradients of two weights and a loss are summed over the batch in one all_reduce, where that is asked for; each is
// used by itself after it. By default XLA does that.
// RUN: shardpass-opt %s 'builtin.module(shardpass-import,shardpass-propagate{effort=0},shardpass-partition,shardpass-join{all-reduces})' | FileCheck %s
// RUN: shardpass-opt %s "partition{effort=0}" | FileCheck %s --check-prefix=XLA

// XLA-COUNT-3: "stablehlo.all_reduce"

// CHECK-LABEL: func.func @main(
// CHECK-DAG: %[[A:.*]] = stablehlo.dot_general {{.*}} -> tensor<16x4xf32>
// CHECK-DAG: %[[B:.*]] = stablehlo.dot_general {{.*}} -> tensor<16x2xf32>
// CHECK-DAG: stablehlo.reshape %[[A]] : (tensor<16x4xf32>) -> tensor<1x64xf32>
// CHECK-DAG: stablehlo.reshape %[[B]] : (tensor<16x2xf32>) -> tensor<1x32xf32>
// CHECK: stablehlo.concatenate {{.*}} -> tensor<1x97xf32>
// CHECK: "stablehlo.all_reduce"
// CHECK: shardpass.cause = "partial results of stablehlo.dot_general; partial results of stablehlo.reduce"
// CHECK-NOT: "stablehlo.all_reduce"
func.func @main(%x: tensor<32x16xf32> {mhlo.sharding = "{devices=[8,1]<=[8]}"},
                %a: tensor<32x4xf32> {mhlo.sharding = "{devices=[8,1]<=[8]}"},
                %b: tensor<32x2xf32> {mhlo.sharding = "{devices=[8,1]<=[8]}"}) -> (tensor<16x4xf32>, tensor<16x2xf32>, tensor<f32>) {
  %0 = stablehlo.dot_general %x, %a, contracting_dims = [0] x [0] : (tensor<32x16xf32>, tensor<32x4xf32>) -> tensor<16x4xf32>
  %2 = stablehlo.exponential %0 : tensor<16x4xf32>
  %3 = stablehlo.dot_general %x, %b, contracting_dims = [0] x [0] : (tensor<32x16xf32>, tensor<32x2xf32>) -> tensor<16x2xf32>
  %zero = stablehlo.constant dense<0.0> : tensor<f32>
  %4 = stablehlo.reduce(%b init: %zero) applies stablehlo.add across dimensions = [0, 1] : (tensor<32x2xf32>, tensor<f32>) -> tensor<f32>
  return %2, %3, %4 : tensor<16x4xf32>, tensor<16x2xf32>, tensor<f32>
}
