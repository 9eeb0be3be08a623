// Two texts of one sharding: the op goes, and nothing comes in its place.
// RUN: shardpass-opt %s 'builtin.module(shardpass-redistribute)' | FileCheck %s

module attributes {mhlo.num_partitions = 8 : i32, mhlo.num_replicas = 1 : i32} {
  // CHECK-LABEL: func.func public @main
  // CHECK-NEXT: return %arg0 : tensor<4x8xf32>
  func.func public @main(%x: tensor<4x8xf32>) -> tensor<4x8xf32> {
    %0 = stablehlo.custom_call @shardpass.redistribute(%x) {
      shardpass.from = "{devices=[2,1,4]<=[8] last_tile_dim_replicate}",
      shardpass.to = "{devices=[2,1,4]0,1,2,3,4,5,6,7 last_tile_dim_replicate}",
      shardpass.global_type = tensor<8x8xf32>
    } : (tensor<4x8xf32>) -> tensor<4x8xf32>
    return %0 : tensor<4x8xf32>
  }
}
