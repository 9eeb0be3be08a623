// Of one width, floats and integers are gathered together, along whatever dimension each.
// RUN: shardpass-opt %s shardpass-join | FileCheck %s

// CHECK-LABEL: func.func @main(
// CHECK: stablehlo.bitcast_convert %arg0 : (tensor<4xf32>) -> tensor<4xui32>
// CHECK: "stablehlo.all_gather"
// CHECK-SAME: all_gather_dim = 0
// CHECK-SAME: (tensor<1x8xui32>) -> tensor<2x8xui32>
// CHECK: stablehlo.bitcast_convert %{{.*}} : (tensor<8xui32>) -> tensor<8xf32>
// CHECK-NOT: all_gather
func.func @main(%x: tensor<4xf32>, %y: tensor<2x2xi32>) -> (tensor<8xf32>, tensor<2x4xi32>) {
  %0 = "stablehlo.all_gather"(%x) <{all_gather_dim = 0 : i64, channel_handle = #stablehlo.channel_handle<handle = 1, type = 1>, replica_groups = dense<[[0, 1]]> : tensor<1x2xi64>, use_global_device_ids}> : (tensor<4xf32>) -> tensor<8xf32>
  %1 = "stablehlo.all_gather"(%y) <{all_gather_dim = 1 : i64, channel_handle = #stablehlo.channel_handle<handle = 2, type = 1>, replica_groups = dense<[[0, 1]]> : tensor<1x2xi64>, use_global_device_ids}> : (tensor<2x2xi32>) -> tensor<2x4xi32>
  return %0, %1 : tensor<8xf32>, tensor<2x4xi32>
}
