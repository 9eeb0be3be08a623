// What lies in the padding of an uneven tile is arbitrary: before a maximum it becomes -inf.
// RUN: shardpass-opt %s partition | FileCheck %s
// RUN: shardpass-run %s partition --devices 2 --check

// 4095 over 2 devices is 2048, with 1 of padding.
// CHECK-LABEL: func.func @main(
// CHECK-SAME: %[[X:[^:]*]]: tensor<4x2048xf32>
// CHECK-DAG: %[[LOW:.*]] = stablehlo.constant dense<0xFF800000> : tensor<4x2048xf32>
// CHECK: stablehlo.compare LT
// CHECK: %[[MASKED:.*]] = stablehlo.select %{{.*}}, %[[X]], %[[LOW]]
// CHECK: stablehlo.reduce(%[[MASKED]] init:
// CHECK: "stablehlo.all_reduce"
module attributes {mhlo.num_partitions = 2 : i32} {
  func.func @main(%x: tensor<4x4095xf32> {mhlo.sharding = "{devices=[1,2]<=[2]}"})
      -> (tensor<4xf32> {mhlo.sharding = "{replicated}"}) {
    %low = stablehlo.constant dense<0xFF800000> : tensor<f32>
    %0 = stablehlo.reduce(%x init: %low) applies stablehlo.maximum across dimensions = [1]
      : (tensor<4x4095xf32>, tensor<f32>) -> tensor<4xf32>
    return %0 : tensor<4xf32>
  }
}
