// A padded dimension is gathered with its padding, which is then cut off.
// RUN: shardpass-opt %s 'builtin.module(shardpass-redistribute)' | FileCheck %s

module attributes {mhlo.num_partitions = 4 : i32, mhlo.num_replicas = 1 : i32} {
  // CHECK-LABEL: func.func public @main
  func.func public @main(%x: tensor<3x6xf32>) -> tensor<10x6xf32> {
    // CHECK: "stablehlo.all_gather"(%arg0)
    // CHECK-SAME: (tensor<3x6xf32>) -> tensor<12x6xf32>
    // CHECK: stablehlo.slice {{%.*}} [0:10, 0:6]
    %0 = stablehlo.custom_call @shardpass.redistribute(%x) {
      shardpass.from = "{devices=[4,1]<=[4]}", shardpass.to = "{replicated}",
      shardpass.global_type = tensor<10x6xf32>} : (tensor<3x6xf32>) -> tensor<10x6xf32>
    return %0 : tensor<10x6xf32>
  }
}
