// From one device, 10 rows in tiles of 3: each round sends a tile; the last, of one row, is padded on its way.
// RUN: shardpass-opt %s 'builtin.module(shardpass-redistribute)' | FileCheck %s

module attributes {mhlo.num_partitions = 4 : i32, mhlo.num_replicas = 1 : i32} {
  // CHECK-LABEL: func.func public @main
  func.func public @main(%x: tensor<10x6xf32>) -> tensor<3x6xf32> {
    // CHECK-NOT: all_gather
    // CHECK-COUNT-3: "stablehlo.collective_permute"
    // CHECK-NOT: "stablehlo.collective_permute"
    // CHECK: return {{%.*}} : tensor<3x6xf32>
    %0 = stablehlo.custom_call @shardpass.redistribute(%x) {
      shardpass.from = "{maximal device=1}", shardpass.to = "{devices=[4,1]<=[4]}",
      shardpass.global_type = tensor<10x6xf32>} : (tensor<10x6xf32>) -> tensor<3x6xf32>
    return %0 : tensor<3x6xf32>
  }
}
