// The tiles of an all_gather go round the ring while a device multiplies the one that it holds. The all_gather along
// columns is written as reshape, all_gather, transpose and reshape: what each device contributes is found through them.
// RUN: shardpass-opt %s 'shardpass-collective-matmul{matmul-loops=all},canonicalize,cse' --split-input-file 2>/dev/null | FileCheck %s
// RUN: shardpass-opt %s shardpass-collective-matmul --split-input-file | FileCheck %s --check-prefix=OFF

// OFF-LABEL: func.func @main(
// OFF: all_gather
// OFF-NOT: collective_permute

// CHECK-LABEL: func.func @main(%arg0: tensor<2x3xf32>, %arg1: tensor<3x5xf32>)
// CHECK-NOT: all_gather
// CHECK: %[[NEXT:.*]] = "stablehlo.collective_permute"(%arg0)
// CHECK-SAME: dense<{{\[\[}}1, 0], [2, 1], [3, 2], [0, 3]]>
// CHECK: %[[OWN:.*]] = stablehlo.dot_general %arg0, %arg1
// CHECK: %[[START:.*]] = stablehlo.dynamic_update_slice %{{.*}}, %[[OWN]]
// CHECK: stablehlo.while({{.*}}%[[TOTAL:iterArg_[0-9]+]] = %[[START]], %[[HELD:iterArg_[0-9]+]] = %[[NEXT]])
// CHECK: %[[BLOCK:.*]] = stablehlo.dot_general %[[HELD]], %arg1
// CHECK: stablehlo.dynamic_update_slice %[[TOTAL]], %[[BLOCK]]
// CHECK: "stablehlo.collective_permute"(%[[HELD]])
// CHECK-NOT: all_gather
module attributes {mhlo.num_partitions = 4 : i32} {
  func.func @main(%x: tensor<2x3xf32>, %w: tensor<3x5xf32>) -> tensor<8x5xf32> {
    %0 = "stablehlo.all_gather"(%x) <{all_gather_dim = 0 : i64, channel_handle = #stablehlo.channel_handle<handle = 1, type = 1>, replica_groups = dense<[[0, 1, 2, 3]]> : tensor<1x4xi64>, use_global_device_ids}> : (tensor<2x3xf32>) -> tensor<8x3xf32>
    %1 = stablehlo.dot_general %0, %w, contracting_dims = [1] x [0] : (tensor<8x3xf32>, tensor<3x5xf32>) -> tensor<8x5xf32>
    return %1 : tensor<8x5xf32>
  }
}

// -----
// CHECK-LABEL: func.func @main(%arg0: tensor<4x3xf32>, %arg1: tensor<6x5xf32>)
// CHECK-NOT: all_gather
// CHECK: "stablehlo.collective_permute"(%[[TILE:.*]]) <{{.*}}dense<{{\[\[}}1, 0], [0, 1]]>{{.*}}shardpass.axes = "x"
// CHECK: %[[ROWS:.*]] = stablehlo.dynamic_slice %arg1, {{.*}}sizes = [3, 5]
// CHECK: %[[ONE:.*]] = stablehlo.dot_general %[[TILE]], %[[ROWS]]
// CHECK: %[[OTHER:.*]] = stablehlo.dot_general
// CHECK: stablehlo.add %[[ONE]], %[[OTHER]] : tensor<4x5xf32>
module attributes {mhlo.num_partitions = 2 : i32} {
  func.func @main(%x: tensor<4x3xf32>, %w: tensor<6x5xf32>) -> tensor<4x5xf32> {
    %0 = stablehlo.reshape %x : (tensor<4x3xf32>) -> tensor<1x4x3xf32>
    %1 = "stablehlo.all_gather"(%0) <{all_gather_dim = 0 : i64, channel_handle = #stablehlo.channel_handle<handle = 1, type = 1>, replica_groups = dense<[[0, 1]]> : tensor<1x2xi64>, use_global_device_ids}> {shardpass.axes = "x"} : (tensor<1x4x3xf32>) -> tensor<2x4x3xf32>
    %2 = stablehlo.transpose %1, dims = [1, 0, 2] : (tensor<2x4x3xf32>) -> tensor<4x2x3xf32>
    %3 = stablehlo.reshape %2 : (tensor<4x2x3xf32>) -> tensor<4x6xf32>
    %4 = stablehlo.dot_general %3, %w, contracting_dims = [1] x [0] : (tensor<4x6xf32>, tensor<6x5xf32>) -> tensor<4x5xf32>
    return %4 : tensor<4x5xf32>
  }
}
