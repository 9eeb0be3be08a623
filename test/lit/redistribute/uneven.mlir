// Borders that cross (tiles of 5 rows and of 3): two tiles of 6 rows are two of 3 each, and 12 rows are enough for 10.
// RUN: shardpass-opt %s 'builtin.module(shardpass-redistribute)' | FileCheck %s

module attributes {mhlo.num_partitions = 4 : i32, mhlo.num_replicas = 1 : i32} {
  // CHECK-LABEL: func.func public @main
  func.func public @main(%x: tensor<5x3xf32>) -> tensor<3x6xf32> {
    // The tile's border slides by a row, which its neighbour sends.
    // CHECK: stablehlo.slice %arg0 [0:1, 0:3] : (tensor<5x3xf32>) -> tensor<1x3xf32>
    // CHECK: "stablehlo.collective_permute"{{.*}} dense<{{\[\[}}2, 0], [3, 1]]>
    // CHECK: stablehlo.dynamic_slice {{.*}} sizes = [6, 3]
    // CHECK: "stablehlo.all_to_all"
    // CHECK-NOT: all_gather
    // CHECK: return {{%.*}} : tensor<3x6xf32>
    %0 = stablehlo.custom_call @shardpass.redistribute(%x) {
      shardpass.from = "{devices=[2,2]<=[4]}", shardpass.to = "{devices=[4,1]<=[4]}",
      shardpass.global_type = tensor<10x6xf32>} : (tensor<5x3xf32>) -> tensor<3x6xf32>
    return %0 : tensor<3x6xf32>
  }
}
