// case 1: a reduction over a split dimension: the collective has the reducer's own op.
// RUN: shardpass-opt %s 'shardpass-import,shardpass-propagate,shardpass-partition' | FileCheck %s
// RUN: shardpass-run %s partition --devices 2 --check

// CHECK-LABEL: func.func @main(
// CHECK: %[[PART:.*]] = stablehlo.reduce({{.*}}) applies stablehlo.maximum across dimensions = [1] : (tensor<4x2048xf32>, tensor<f32>) -> tensor<4xf32>
// CHECK: "stablehlo.all_reduce"(%[[PART]])
// CHECK-NOT: stablehlo.add
// CHECK: stablehlo.maximum
// CHECK: shardpass.cause = "partial results of stablehlo.reduce"
func.func @main(%x: tensor<4x4096xf32> {mhlo.sharding = "{devices=[1,2]<=[2]}"}) -> (tensor<4xf32> {mhlo.sharding = "{replicated}"}) {
  %low = stablehlo.constant dense<0xFF800000> : tensor<f32>
  %0 = stablehlo.reduce(%x init: %low) applies stablehlo.maximum across dimensions = [1] : (tensor<4x4096xf32>, tensor<f32>) -> tensor<4xf32>
  return %0 : tensor<4xf32>
}
