// What lies in the padding is arbitrary: before a contraction or a sum it becomes zero, before a maximum -inf.
// RUN: shardpass-opt %s 'shardpass-import,shardpass-propagate,shardpass-partition' --split-input-file | FileCheck %s

// 4095 over 2 is 2048 with 1 of padding, in both operands.
// CHECK-LABEL: func.func @main(
// CHECK-SAME: %[[X:[^:]*]]: tensor<4x2048xf32>
// CHECK: stablehlo.compare LT
// CHECK: %[[ZERO:.*]] = stablehlo.constant dense<0.000000e+00> : tensor<4x2048xf32>
// CHECK: %[[MASKED:.*]] = stablehlo.select %{{.*}}, %[[X]], %[[ZERO]]
// CHECK: stablehlo.select %{{.*}} : tensor<2048x4xi1>, tensor<2048x4xf32>
// CHECK: stablehlo.dot_general %[[MASKED]], %{{.*}}
// CHECK: stablehlo.all_reduce
func.func @main(%x: tensor<4x4095xf32> {mhlo.sharding = "{devices=[1,2]<=[2]}"}, %y: tensor<4095x4xf32> {mhlo.sharding = "{devices=[2,1]<=[2]}"})
    -> (tensor<4x4xf32> {mhlo.sharding = "{replicated}"}) {
  %0 = stablehlo.dot_general %x, %y, contracting_dims = [1] x [0] : (tensor<4x4095xf32>, tensor<4095x4xf32>) -> tensor<4x4xf32>
  return %0 : tensor<4x4xf32>
}

// -----

// CHECK-LABEL: func.func @main(
// CHECK-SAME: %[[X:[^:]*]]: tensor<4x2048xf32>
// CHECK: %[[LOW:.*]] = stablehlo.constant dense<0xFF800000> : tensor<4x2048xf32>
// CHECK: %[[MASKED:.*]] = stablehlo.select %{{.*}}, %[[X]], %[[LOW]]
// CHECK: stablehlo.reduce(%[[MASKED]] init:
func.func @main(%x: tensor<4x4095xf32> {mhlo.sharding = "{devices=[1,2]<=[2]}"}) -> (tensor<4xf32> {mhlo.sharding = "{replicated}"}) {
  %low = stablehlo.constant dense<0xFF800000> : tensor<f32>
  %0 = stablehlo.reduce(%x init: %low) applies stablehlo.maximum across dimensions = [1] : (tensor<4x4095xf32>, tensor<f32>) -> tensor<4xf32>
  return %0 : tensor<4xf32>
}
