// Borders that cross (tiles of 5 rows and of 3): rounds of collective_permute, each device sends what another lacks.
// RUN: shardpass-opt %s 'builtin.module(shardpass-redistribute)' | FileCheck %s

module attributes {mhlo.num_partitions = 4 : i32, mhlo.num_replicas = 1 : i32} {
  // CHECK-LABEL: func.func public @main
  func.func public @main(%x: tensor<5x3xf32>) -> tensor<3x6xf32> {
    // CHECK-NOT: all_gather
    // CHECK: "stablehlo.collective_permute"
    // CHECK: stablehlo.select
    // CHECK-NOT: all_gather
    // CHECK: return {{%.*}} : tensor<3x6xf32>
    %0 = stablehlo.custom_call @shardpass.redistribute(%x) {
      shardpass.from = "{devices=[2,2]<=[4]}", shardpass.to = "{devices=[4,1]<=[4]}",
      shardpass.global_type = tensor<10x6xf32>} : (tensor<5x3xf32>) -> tensor<3x6xf32>
    return %0 : tensor<3x6xf32>
  }
}
