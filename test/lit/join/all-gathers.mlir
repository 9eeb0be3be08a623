// all_gathers along one dimension become one with several operands, of any types and shapes.
// RUN: shardpass-opt %s shardpass-join | FileCheck %s

// CHECK-LABEL: func.func @main(
// CHECK: %[[G:.*]]:2 = "stablehlo.all_gather"(%arg0, %arg1)
// CHECK-SAME: (tensor<4xf32>, tensor<2x2xi32>) -> (tensor<8xf32>, tensor<4x2xi32>)
// CHECK-NEXT: return %[[G]]#0, %[[G]]#1
func.func @main(%x: tensor<4xf32>, %y: tensor<2x2xi32>) -> (tensor<8xf32>, tensor<4x2xi32>) {
  %0 = "stablehlo.all_gather"(%x) <{all_gather_dim = 0 : i64, channel_handle = #stablehlo.channel_handle<handle = 1, type = 1>, replica_groups = dense<[[0, 1]]> : tensor<1x2xi64>, use_global_device_ids}> : (tensor<4xf32>) -> tensor<8xf32>
  %1 = "stablehlo.all_gather"(%y) <{all_gather_dim = 0 : i64, channel_handle = #stablehlo.channel_handle<handle = 2, type = 1>, replica_groups = dense<[[0, 1]]> : tensor<1x2xi64>, use_global_device_ids}> : (tensor<2x2xi32>) -> tensor<4x2xi32>
  return %0, %1 : tensor<8xf32>, tensor<4x2xi32>
}
