// Columns to rows on one axis: one all_to_all, no permute. Location, cause and axes stay with it.
// RUN: shardpass-opt %s 'builtin.module(shardpass-redistribute{planner=rink})' --mlir-print-debuginfo | FileCheck %s
// RUN: shardpass-opt %s 'builtin.module(shardpass-redistribute)' --mlir-print-debuginfo | FileCheck %s

module attributes {mhlo.num_partitions = 8 : i32, mhlo.num_replicas = 1 : i32} {
  // CHECK-LABEL: func.func public @main
  func.func public @main(%x: tensor<8x2xf32>) -> tensor<1x16xf32> {
    // CHECK-NOT: collective_permute
    // CHECK: "stablehlo.all_to_all"(%arg0)
    // CHECK-SAME: channel_handle<handle = 1, type = 1>
    // CHECK-SAME: concat_dimension = 1
    // CHECK-SAME: dense<{{\[}}[0, 1, 2, 3, 4, 5, 6, 7]]>
    // CHECK-SAME: split_dimension = 0
    // CHECK-SAME: shardpass.axes = "axis_0", shardpass.cause = "the user's constraint"
    // CHECK-SAME: loc([[PLACE:#[a-z0-9]+]])
    // CHECK-NOT: custom_call
    %0 = stablehlo.custom_call @shardpass.redistribute(%x) {
      shardpass.from = "{devices=[1,8]<=[8]}", shardpass.to = "{devices=[8,1]<=[8]}",
      shardpass.global_type = tensor<8x16xf32>, shardpass.cause = "the user's constraint"
    } : (tensor<8x2xf32>) -> tensor<1x16xf32> loc("model.py":12:3)
    return %0 : tensor<1x16xf32>
  }
}
// CHECK: [[PLACE]] = loc("model.py":12:3)
