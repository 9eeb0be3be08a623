// Two axes leave two dimensions for two others in one collective: digits to the front, one all_to_all, digits back.
// RUN: shardpass-opt %s 'builtin.module(shardpass-redistribute)' | FileCheck %s
// RUN: shardpass-opt %s 'builtin.module(shardpass-redistribute{planner=rink})' | FileCheck %s --check-prefix=RINK

module attributes {mhlo.num_partitions = 4 : i32, mhlo.num_replicas = 1 : i32} {
  // CHECK-LABEL: func.func public @main
  func.func public @main(%x: tensor<4x4x8x8xf32>) -> tensor<8x8x4x4xf32> {
    // CHECK: stablehlo.transpose
    // CHECK: "stablehlo.all_to_all"
    // CHECK-SAME: dense<{{\[}}[0, 1, 2, 3]]>
    // CHECK-SAME: split_count = 4
    // CHECK-SAME: shardpass.axes = "a,b"
    // CHECK-NOT: "stablehlo.all_to_all"
    // CHECK: stablehlo.transpose
    // RINK: "stablehlo.all_to_all"
    // RINK: "stablehlo.all_to_all"
    %0 = stablehlo.custom_call @shardpass.redistribute(%x) {
      shardpass.from = "{mesh['a'=2,'b'=2], [{'a'}, {'b'}, {}, {}]}",
      shardpass.to = "{mesh['a'=2,'b'=2], [{}, {}, {'a'}, {'b'}]}",
      shardpass.global_type = tensor<8x8x8x8xf32>} : (tensor<4x4x8x8xf32>) -> tensor<8x8x4x4xf32>
    return %0 : tensor<8x8x4x4xf32>
  }
}
