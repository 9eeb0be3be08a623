// The paper's section 7.3: a permute that cannot be avoided comes before the gather, where tiles are small.
// x splits the rows and must be gathered; y must take over the columns from z.
// RUN: shardpass-opt %s 'builtin.module(shardpass-redistribute{planner=rink})' | FileCheck %s

module attributes {mhlo.num_partitions = 8 : i32, mhlo.num_replicas = 1 : i32} {
  // CHECK-LABEL: func.func public @main
  func.func public @main(%x: tensor<4x4xf32>) -> tensor<8x4xf32> {
    // CHECK: "stablehlo.collective_permute"
    // CHECK-SAME: (tensor<4x4xf32>) -> tensor<4x4xf32>
    // CHECK-NEXT: "stablehlo.all_gather"
    // CHECK-SAME: all_gather_dim = 0
    // CHECK-SAME: use_global_device_ids
    // CHECK-SAME: (tensor<4x4xf32>) -> tensor<8x4xf32>
    %0 = stablehlo.custom_call @shardpass.redistribute(%x) {
      shardpass.from = "{mesh['x'=2,'y'=2,'z'=2], [{'x'}, {'z'}]}",
      shardpass.to = "{mesh['x'=2,'y'=2,'z'=2], [{}, {'y'}]}",
      shardpass.global_type = tensor<8x8xf32>} : (tensor<4x4xf32>) -> tensor<8x4xf32>
    return %0 : tensor<8x4xf32>
  }
}
