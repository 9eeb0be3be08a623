// A replicated array is sliced: the offset is arithmetic on the partition's number, computed once for two equal slices.
// RUN: shardpass-opt %s 'builtin.module(shardpass-redistribute)' | FileCheck %s

module attributes {mhlo.num_partitions = 8 : i32, mhlo.num_replicas = 1 : i32} {
  // CHECK-LABEL: func.func public @main
  func.func public @main(%x: tensor<8x8xf32>, %y: tensor<8x8xf32>) -> (tensor<1x8xf32>, tensor<1x8xf32>) {
    // CHECK: stablehlo.partition_id
    // CHECK-NOT: dense<[0, 1, 2, 3, 4, 5, 6, 7]>
    // CHECK: stablehlo.dynamic_slice %arg0, [[I:%[0-9]+]], [[J:%[a-z0-9]+]], sizes = [1, 8]
    // CHECK-NOT: partition_id
    // CHECK: stablehlo.dynamic_slice %arg1, [[I]], [[J]], sizes = [1, 8]
    // CHECK-NOT: replica_groups
    %0 = stablehlo.custom_call @shardpass.redistribute(%x) {
      shardpass.from = "{replicated}", shardpass.to = "{devices=[8,1]<=[8]}",
      shardpass.global_type = tensor<8x8xf32>} : (tensor<8x8xf32>) -> tensor<1x8xf32>
    %1 = stablehlo.custom_call @shardpass.redistribute(%y) {
      shardpass.from = "{replicated}", shardpass.to = "{devices=[8,1]<=[8]}",
      shardpass.global_type = tensor<8x8xf32>} : (tensor<8x8xf32>) -> tensor<1x8xf32>
    return %0, %1 : tensor<1x8xf32>, tensor<1x8xf32>
  }
}
