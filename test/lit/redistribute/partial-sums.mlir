// Partial sums over y: scattered where the target splits on y, summed where it is whole.
// RUN: shardpass-opt %s 'builtin.module(shardpass-redistribute)' | FileCheck %s

module attributes {mhlo.num_partitions = 4 : i32, mhlo.num_replicas = 1 : i32} {
  // CHECK-LABEL: func.func public @main
  func.func public @main(%x: tensor<4x8xf32>, %y: tensor<4x8xf32>) -> (tensor<2x8xf32>, tensor<4x8xf32>) {
    // CHECK: "stablehlo.reduce_scatter"
    // CHECK-SAME: dense<{{\[}}[0, 1], [2, 3]]>
    // CHECK: stablehlo.add
    // CHECK: shardpass.axes = "y"
    // CHECK: "stablehlo.all_reduce"
    // CHECK: stablehlo.add
    // CHECK: shardpass.axes = "y"
    %0 = stablehlo.custom_call @shardpass.redistribute(%x) {
      shardpass.from = "{mesh['x'=2,'y'=2], [{'x'}, {}], unreduced={'y'}}",
      shardpass.to = "{mesh['x'=2,'y'=2], [{'x','y'}, {}]}",
      shardpass.global_type = tensor<8x8xf32>} : (tensor<4x8xf32>) -> tensor<2x8xf32>
    %1 = stablehlo.custom_call @shardpass.redistribute(%y) {
      shardpass.from = "{mesh['x'=2,'y'=2], [{'x'}, {}], unreduced={'y'}}",
      shardpass.to = "{mesh['x'=2,'y'=2], [{'x'}, {}]}",
      shardpass.global_type = tensor<8x8xf32>} : (tensor<4x8xf32>) -> tensor<4x8xf32>
    return %0, %1 : tensor<2x8xf32>, tensor<4x8xf32>
  }
}
