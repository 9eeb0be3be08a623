// A digit moves to the columns while another takes its place: two permutes of half a tile, joined in one copy.
// RUN: shardpass-opt %s 'builtin.module(shardpass-redistribute)' | FileCheck %s

module attributes {mhlo.num_partitions = 4 : i32, mhlo.num_replicas = 1 : i32} {
  // CHECK-LABEL: func.func public @main
  func.func public @main(%x: tensor<2x8xf32>) -> tensor<4x4xf32> {
    // CHECK-COUNT-2: "stablehlo.collective_permute"({{%.*}}) {{.*}} : (tensor<2x4xf32>) -> tensor<2x4xf32>
    // CHECK-NOT: "stablehlo.all_to_all"
    // CHECK: stablehlo.concatenate
    // CHECK-NOT: dynamic_update_slice
    %0 = stablehlo.custom_call @shardpass.redistribute(%x) {
      shardpass.from = "{mesh['a'=2,'b'=2], [{'a','b'}, {}]}",
      shardpass.to = "{mesh['a'=2,'b'=2], [{'b'}, {'a'}]}",
      shardpass.global_type = tensor<8x8xf32>} : (tensor<2x8xf32>) -> tensor<4x4xf32>
    return %0 : tensor<4x4xf32>
  }
}
