// Split over the batch: each device sums its rows, two all_reduces of one number a feature; the operand stays.
// Propagation alone: of these ten rows one gather (150 bytes and a latency) is cheaper than two all_reduces.
// RUN: shardpass-opt %s "partition{effort=0}" | FileCheck %s
// RUN: shardpass-run %s "partition{effort=0}" --devices 4 --check

// CHECK-LABEL: func.func @main(%arg0: tensor<3x5xf32>
// CHECK: stablehlo.reduce({{.*}} across dimensions = [0] : (tensor<3x5xf32>, tensor<f32>) -> tensor<5xf32>
// CHECK: "stablehlo.all_reduce"
// CHECK: shardpass.cause = "partial results of stablehlo.reduce"
// CHECK: stablehlo.subtract {{.*}} : tensor<3x5xf32>
// CHECK: stablehlo.reduce({{.*}} across dimensions = [0] : (tensor<3x5xf32>, tensor<f32>) -> tensor<5xf32>
// CHECK: "stablehlo.all_reduce"
// CHECK-NOT: stablehlo.all_
// CHECK-NOT: batch_norm
module attributes {mhlo.num_partitions = 4 : i32} {
  func.func @main(%x: tensor<10x5xf32> {mhlo.sharding = "{devices=[4,1]<=[4]}"}, %s: tensor<5xf32>)
      -> (tensor<10x5xf32> {mhlo.sharding = "{devices=[4,1]<=[4]}"}, tensor<5xf32>) {
    %0:3 = "stablehlo.batch_norm_training"(%x, %s, %s) <{epsilon = 1.0 : f32, feature_index = 1 : i64}>
        : (tensor<10x5xf32>, tensor<5xf32>, tensor<5xf32>) -> (tensor<10x5xf32>, tensor<5xf32>, tensor<5xf32>)
    return %0#0, %0#2 : tensor<10x5xf32>, tensor<5xf32>
  }
}
