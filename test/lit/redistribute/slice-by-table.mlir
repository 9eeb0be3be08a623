// A device order that no digits of the partition's number write: the offset comes from a table.
// RUN: shardpass-opt %s 'builtin.module(shardpass-redistribute)' | FileCheck %s

module attributes {mhlo.num_partitions = 4 : i32, mhlo.num_replicas = 1 : i32} {
  // CHECK-LABEL: func.func public @main
  func.func public @main(%x: tensor<8x8xf32>) -> tensor<2x8xf32> {
    // device 0 is second, 1 fourth, 2 third, 3 first: offsets 2, 6, 4, 0
    // CHECK: stablehlo.constant dense<[2, 6, 4, 0]> : tensor<4xi32>
    // CHECK: stablehlo.dynamic_slice %arg0
    %0 = stablehlo.custom_call @shardpass.redistribute(%x) {
      shardpass.from = "{replicated}", shardpass.to = "{devices=[4,1]3,0,2,1}",
      shardpass.global_type = tensor<8x8xf32>} : (tensor<8x8xf32>) -> tensor<2x8xf32>
    return %0 : tensor<2x8xf32>
  }
}
