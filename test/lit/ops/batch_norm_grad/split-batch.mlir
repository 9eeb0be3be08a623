// Two sums over the batch, each of one number a feature; padded rows of the uneven tiles become zero before they are
// summed. Operand and gradient stay where they are.
// RUN: shardpass-opt %s partition | FileCheck %s
// RUN: shardpass-run %s partition --devices 4 --check

// CHECK-LABEL: func.func @main(%arg0: tensor<3x5xf32>
// CHECK: stablehlo.select %{{.*}} : tensor<3x5xi1>, tensor<3x5xf32>
// CHECK: "stablehlo.all_reduce"
// CHECK: (tensor<5xf32>) -> tensor<5xf32>
// CHECK: stablehlo.select %{{.*}} : tensor<3x5xi1>, tensor<3x5xf32>
// CHECK: "stablehlo.all_reduce"
// CHECK: (tensor<5xf32>) -> tensor<5xf32>
// CHECK-NOT: channel_handle
// CHECK-NOT: batch_norm
module attributes {mhlo.num_partitions = 4 : i32} {
  func.func @main(%x: tensor<10x5xf32> {mhlo.sharding = "{devices=[4,1]<=[4]}"}, %s: tensor<5xf32>,
      %g: tensor<10x5xf32> {mhlo.sharding = "{devices=[4,1]<=[4]}"})
      -> (tensor<10x5xf32> {mhlo.sharding = "{devices=[4,1]<=[4]}"}, tensor<5xf32>, tensor<5xf32>) {
    %v = stablehlo.abs %s : tensor<5xf32>
    %0:3 = "stablehlo.batch_norm_grad"(%x, %s, %s, %v, %g) <{epsilon = 1.0 : f32, feature_index = 1 : i64}>
        : (tensor<10x5xf32>, tensor<5xf32>, tensor<5xf32>, tensor<5xf32>, tensor<10x5xf32>)
        -> (tensor<10x5xf32>, tensor<5xf32>, tensor<5xf32>)
    return %0#0, %0#1, %0#2 : tensor<10x5xf32>, tensor<5xf32>, tensor<5xf32>
  }
}
