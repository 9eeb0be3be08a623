// A sum that the user wants replicated, though only its parts are used.
// RUN: shardpass-opt %s --split-input-file 'shardpass-import,shardpass-propagate,shardpass-partition,shardpass-defer' | FileCheck %s

// CHECK-LABEL: module @over_the_same_axis
// CHECK: func.func @main(%arg0: tensor<8x32xf32>
// CHECK: "stablehlo.reduce_scatter"
// CHECK-SAME: scatter_dimension = 0
// CHECK: (tensor<8x8xf32>) -> tensor<4x8xf32>
// CHECK-NOT: shardpass.redistribute
// CHECK-NOT: all_reduce
module @over_the_same_axis {
  func.func @main(%over_the_same: tensor<8x64xf32> {mhlo.sharding = "{devices=[1,2]<=[2]}"}, %w: tensor<64x8xf32> {mhlo.sharding = "{devices=[2,1]<=[2]}"})
      -> (tensor<8x8xf32> {mhlo.sharding = "{devices=[2,1]<=[2]}"}) {
    %0 = stablehlo.dot_general %over_the_same, %w, contracting_dims = [1] x [0] : (tensor<8x64xf32>, tensor<64x8xf32>) -> tensor<8x8xf32>
    %1 = stablehlo.custom_call @Sharding(%0) {mhlo.sharding = "{replicated}"} : (tensor<8x8xf32>) -> tensor<8x8xf32>
    %2 = stablehlo.negate %1 : tensor<8x8xf32>
    return %2 : tensor<8x8xf32>
  }
}

// -----
// Summed over both axes of 2x2, split over one: scattered over that, and the quarter summed over the other.
// CHECK-LABEL: module @over_more_axes
// CHECK: func.func @main(%arg0: tensor<8x16xf32>
// CHECK: "stablehlo.reduce_scatter"
// CHECK-SAME: replica_groups = dense<{{\[\[}}0, 1], [2, 3]]>
// CHECK: (tensor<8x8xf32>) -> tensor<4x8xf32>
// CHECK: "stablehlo.all_reduce"
// CHECK-SAME: replica_groups = dense<{{\[\[}}0, 2], [1, 3]]>
// CHECK: (tensor<4x8xf32>) -> tensor<4x8xf32>
// CHECK-NOT: shardpass.redistribute
module @over_more_axes {
  func.func @main(%over_more: tensor<8x64xf32> {mhlo.sharding = "{devices=[1,4]<=[4]}"}, %w: tensor<64x8xf32> {mhlo.sharding = "{devices=[4,1]<=[4]}"})
      -> (tensor<8x8xf32> {mhlo.sharding = "{devices=[2,1,2]<=[2,2]T(1,0) last_tile_dim_replicate}"}) {
    %0 = stablehlo.dot_general %over_more, %w, contracting_dims = [1] x [0] : (tensor<8x64xf32>, tensor<64x8xf32>) -> tensor<8x8xf32>
    %1 = stablehlo.custom_call @Sharding(%0) {mhlo.sharding = "{replicated}"} : (tensor<8x8xf32>) -> tensor<8x8xf32>
    %2 = stablehlo.negate %1 : tensor<8x8xf32>
    return %2 : tensor<8x8xf32>
  }
}

// -----
// The whole sum is used too.
// CHECK-LABEL: module @whole_sum_used_too
// CHECK: func.func @main(%arg0: tensor<8x48xf32>
// CHECK: "stablehlo.all_reduce"
// CHECK-NOT: reduce_scatter
// CHECK: stablehlo.custom_call @shardpass.redistribute
module @whole_sum_used_too {
  func.func @main(%used_whole: tensor<8x96xf32> {mhlo.sharding = "{devices=[1,2]<=[2]}"}, %w: tensor<96x8xf32> {mhlo.sharding = "{devices=[2,1]<=[2]}"})
      -> (tensor<8x8xf32> {mhlo.sharding = "{devices=[2,1]<=[2]}"}, tensor<8x8xf32> {mhlo.sharding = "{replicated}"}) {
    %0 = stablehlo.dot_general %used_whole, %w, contracting_dims = [1] x [0] : (tensor<8x96xf32>, tensor<96x8xf32>) -> tensor<8x8xf32>
    %1 = stablehlo.custom_call @Sharding(%0) {mhlo.sharding = "{replicated}"} : (tensor<8x8xf32>) -> tensor<8x8xf32>
    %2 = stablehlo.negate %1 : tensor<8x8xf32>
    return %2, %1 : tensor<8x8xf32>, tensor<8x8xf32>
  }
}
