// Inside a manual region values are tiles already: its ops stay as they are, its borders vanish.
// RUN: shardpass-opt %s 'shardpass-import,shardpass-propagate,shardpass-partition' | FileCheck %s

// CHECK-LABEL: func.func @main(
// CHECK-SAME: %[[X:[^:]*]]: tensor<4xf32>
// CHECK-NEXT: %[[RED:.*]] = "stablehlo.all_reduce"(%[[X]]) <{channel_handle = #stablehlo.channel_handle<handle = 7, type = 1>
// CHECK: %[[NEG:.*]] = stablehlo.negate %[[RED]] : tensor<4xf32>
// CHECK-NOT: SPMD
// CHECK: stablehlo.sine %[[NEG]] : tensor<4xf32>
module {
  sdy.mesh @mesh = <["x"=2]>
  func.func @main(%x: tensor<8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}]>}) -> tensor<8xf32> {
    %0 = sdy.manual_computation(%x) in_shardings=[<@mesh, [{"x"}]>] out_shardings=[<@mesh, [{"x"}]>] manual_axes={"x"} (%tile: tensor<4xf32>) {
      %1 = "stablehlo.all_reduce"(%tile) <{channel_handle = #stablehlo.channel_handle<handle = 7, type = 1>, replica_groups = dense<[[0, 1]]> : tensor<1x2xi64>, use_global_device_ids}> ({
      ^bb0(%a: tensor<f32>, %b: tensor<f32>):
        %s = stablehlo.add %a, %b : tensor<f32>
        stablehlo.return %s : tensor<f32>
      }) : (tensor<4xf32>) -> tensor<4xf32>
      %2 = stablehlo.negate %1 : tensor<4xf32>
      sdy.return %2 : tensor<4xf32>
    } : (tensor<8xf32>) -> tensor<8xf32>
    %3 = stablehlo.sine %0 : tensor<8xf32>
    return %3 : tensor<8xf32>
  }
}
