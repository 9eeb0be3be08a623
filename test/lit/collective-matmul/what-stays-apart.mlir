// Left as they are: a gathered array that something else takes too, a reshape that mixes tiles, a maximum that is
// scattered, and with a machine a product too small to hide a permute.
// RUN: shardpass-opt %s 'shardpass-collective-matmul{matmul-loops=all}' --split-input-file 2>/dev/null | FileCheck %s
// RUN: shardpass-opt %s 'shardpass-collective-matmul{matmul-loops=h100}' --split-input-file 2>&1 | FileCheck %s --check-prefix=SMALL

// RUN: shardpass-opt %s 'shardpass-collective-matmul{matmul-loops=memory}' --split-input-file 2>/dev/null | FileCheck %s

// SMALL: remark: all_gather of tensor<8x3xf32> and a product stay separate: in turn, in 4 blocks, they would take 30.0 us instead of 10.0 us (h100), and need 48 bytes instead of 96 [SP311]

// CHECK-LABEL: module @gathered_array_used_twice
// CHECK: all_gather
module @gathered_array_used_twice attributes {mhlo.num_partitions = 2 : i32} {
  func.func @main(%used_twice: tensor<4x3xf32>, %w: tensor<3x5xf32>) -> (tensor<8x5xf32>, tensor<8x3xf32>) {
    %0 = "stablehlo.all_gather"(%used_twice) <{all_gather_dim = 0 : i64, channel_handle = #stablehlo.channel_handle<handle = 1, type = 1>, replica_groups = dense<[[0, 1]]> : tensor<1x2xi64>, use_global_device_ids}> : (tensor<4x3xf32>) -> tensor<8x3xf32>
    %1 = stablehlo.dot_general %0, %w, contracting_dims = [1] x [0] : (tensor<8x3xf32>, tensor<3x5xf32>) -> tensor<8x5xf32>
    return %1, %0 : tensor<8x5xf32>, tensor<8x3xf32>
  }
}

// -----
// CHECK-LABEL: module @reshape_mixes_tiles
// CHECK: all_gather
module @reshape_mixes_tiles attributes {mhlo.num_partitions = 2 : i32} {
  func.func @main(%mixed: tensor<4x3xf32>, %w: tensor<8x5xf32>) -> tensor<3x5xf32> {
    %0 = "stablehlo.all_gather"(%mixed) <{all_gather_dim = 1 : i64, channel_handle = #stablehlo.channel_handle<handle = 1, type = 1>, replica_groups = dense<[[0, 1]]> : tensor<1x2xi64>, use_global_device_ids}> : (tensor<4x3xf32>) -> tensor<4x6xf32>
    %1 = stablehlo.reshape %0 : (tensor<4x6xf32>) -> tensor<8x3xf32>
    %2 = stablehlo.dot_general %1, %w, contracting_dims = [0] x [0] : (tensor<8x3xf32>, tensor<8x5xf32>) -> tensor<3x5xf32>
    return %2 : tensor<3x5xf32>
  }
}

// -----
// CHECK-LABEL: module @scattered_maximum
// CHECK: reduce_scatter
module @scattered_maximum attributes {mhlo.num_partitions = 2 : i32} {
  func.func @main(%no_sum: tensor<4x3xf32>, %w: tensor<3x5xf32>) -> tensor<2x5xf32> {
    %0 = stablehlo.dot_general %no_sum, %w, contracting_dims = [1] x [0] : (tensor<4x3xf32>, tensor<3x5xf32>) -> tensor<4x5xf32>
    %1 = "stablehlo.reduce_scatter"(%0) <{channel_handle = #stablehlo.channel_handle<handle = 1, type = 1>, replica_groups = dense<[[0, 1]]> : tensor<1x2xi64>, scatter_dimension = 0 : i64, use_global_device_ids}> ({
    ^bb0(%a: tensor<f32>, %b: tensor<f32>):
      %2 = stablehlo.maximum %a, %b : tensor<f32>
      stablehlo.return %2 : tensor<f32>
    }) : (tensor<4x5xf32>) -> tensor<2x5xf32>
    return %1 : tensor<2x5xf32>
  }
}

// -----
// CHECK-LABEL: module @too_small_for_the_machine
// CHECK-NOT: all_gather
module @too_small_for_the_machine attributes {mhlo.num_partitions = 4 : i32} {
  func.func @main(%small: tensor<2x3xf32>, %w: tensor<3x5xf32>) -> tensor<8x5xf32> {
    %0 = "stablehlo.all_gather"(%small) <{all_gather_dim = 0 : i64, channel_handle = #stablehlo.channel_handle<handle = 1, type = 1>, replica_groups = dense<[[0, 1, 2, 3]]> : tensor<1x4xi64>, use_global_device_ids}> : (tensor<2x3xf32>) -> tensor<8x3xf32>
    %1 = stablehlo.dot_general %0, %w, contracting_dims = [1] x [0] : (tensor<8x3xf32>, tensor<3x5xf32>) -> tensor<8x5xf32>
    return %1 : tensor<8x5xf32>
  }
}
