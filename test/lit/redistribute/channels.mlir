// New channels do not meet those that the module has.
// RUN: shardpass-opt %s 'builtin.module(shardpass-redistribute)' | FileCheck %s

module attributes {mhlo.num_partitions = 2 : i32, mhlo.num_replicas = 1 : i32} {
  // CHECK-LABEL: func.func public @main
  func.func public @main(%x: tensor<2x4xf32>) -> tensor<4x4xf32> {
    // CHECK: all_gather{{.*}}handle = 8,
    %0 = stablehlo.custom_call @shardpass.redistribute(%x) {
      shardpass.from = "{devices=[2,1]<=[2]}", shardpass.to = "{replicated}",
      shardpass.global_type = tensor<4x4xf32>} : (tensor<2x4xf32>) -> tensor<4x4xf32>
    // CHECK: collective_permute{{.*}}handle = 7,
    %1 = "stablehlo.collective_permute"(%0) {source_target_pairs = dense<[[0, 1], [1, 0]]> : tensor<2x2xi64>,
      channel_handle = #stablehlo.channel_handle<handle = 7, type = 1>} : (tensor<4x4xf32>) -> tensor<4x4xf32>
    return %1 : tensor<4x4xf32>
  }
}
