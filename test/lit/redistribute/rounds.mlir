// Two axes change places while a third moves: two permutes of half a tile, joined in one copy.
// RUN: shardpass-opt %s 'builtin.module(shardpass-redistribute)' | FileCheck %s

module attributes {mhlo.num_partitions = 8 : i32, mhlo.num_replicas = 1 : i32} {
  // CHECK-LABEL: func.func public @main
  func.func public @main(%x: tensor<2x2x2x4xf32>) -> tensor<2x2x4x2xf32> {
    // CHECK-COUNT-2: "stablehlo.collective_permute"({{%.*}}) {{.*}} : (tensor<2x2x2x2xf32>) -> tensor<2x2x2x2xf32>
    // CHECK-NOT: "stablehlo.all_to_all"
    // CHECK: stablehlo.concatenate
    // CHECK-NOT: dynamic_update_slice
    %0 = stablehlo.custom_call @shardpass.redistribute(%x) {
      shardpass.from = "{mesh['a'=2,'b'=2,'c'=2], [{'a'}, {'b'}, {'c'}, {}]}",
      shardpass.to = "{mesh['a'=2,'b'=2,'c'=2], [{'b'}, {'a'}, {}, {'c'}]}",
      shardpass.global_type = tensor<4x4x4x4xf32>} : (tensor<2x2x2x4xf32>) -> tensor<2x2x4x2xf32>
    return %0 : tensor<2x2x4x2xf32>
  }
}
