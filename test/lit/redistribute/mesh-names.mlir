// Collectives are called by the axes of the module's mesh, whatever the sharding's own text says; a part of an axis
// is x:(pre)size.
// RUN: shardpass-opt %s 'builtin.module(shardpass-redistribute)' | FileCheck %s

module attributes {mhlo.num_partitions = 8 : i32, mhlo.num_replicas = 1 : i32,
                   shardpass.mesh = "mesh['data'=2,'model'=4]"} {
  // CHECK-LABEL: func.func public @main
  func.func public @main(%x: tensor<8x2xf32>, %y: tensor<8x4xf32>) -> (tensor<8x8xf32>, tensor<8x8xf32>) {
    // CHECK: shardpass.axes = "model"
    // CHECK: shardpass.axes = "model:(1)2"
    %0 = stablehlo.custom_call @shardpass.redistribute(%x) {
      shardpass.from = "{devices=[1,4,2]<=[2,4]T(1,0) last_tile_dim_replicate}", shardpass.to = "{replicated}",
      shardpass.global_type = tensor<8x8xf32>} : (tensor<8x2xf32>) -> tensor<8x8xf32>
    %1 = stablehlo.custom_call @shardpass.redistribute(%y) {
      shardpass.from = "{devices=[1,2,4]<=[2,2,2]T(1,0,2) last_tile_dim_replicate}", shardpass.to = "{replicated}",
      shardpass.global_type = tensor<8x8xf32>} : (tensor<8x4xf32>) -> tensor<8x8xf32>
    return %0, %1 : tensor<8x8xf32>, tensor<8x8xf32>
  }
}
