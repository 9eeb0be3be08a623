// A broadcast hands on the split of the dimensions that it keeps; one that it stretches or makes has none to give.
// RUN: shardpass-opt %s propagate --split-input-file | FileCheck %s

// CHECK-LABEL: module @forward_through_kept_dimensions
// CHECK: stablehlo.broadcast_in_dim %{{.*}}, dims = [1] {mhlo.sharding = "{devices=[1,2]<=[2]}"} : (tensor<8xf32>) -> tensor<4x8xf32>
module @forward_through_kept_dimensions {
  func.func @main(%x: tensor<8xf32> {mhlo.sharding = "{devices=[2]<=[2]}"}) -> tensor<4x8xf32> {
    %0 = stablehlo.broadcast_in_dim %x, dims = [1] : (tensor<8xf32>) -> tensor<4x8xf32>
    return %0 : tensor<4x8xf32>
  }
}

// -----

// Backward: the made dimension's split does not reach the operand, the kept one's does.
// CHECK-LABEL: module @backward_through_kept_dimensions
// CHECK: func.func @main(
// CHECK-SAME: tensor<8xf32> {mhlo.sharding = "{devices=[2,2]<=[2,2]T(1,0) last_tile_dim_replicate}"})
module @backward_through_kept_dimensions {
  func.func @main(%x: tensor<8xf32>) -> (tensor<4x8xf32> {mhlo.sharding = "{devices=[2,2]<=[4]}"}) {
    %0 = stablehlo.broadcast_in_dim %x, dims = [1] : (tensor<8xf32>) -> tensor<4x8xf32>
    return %0 : tensor<4x8xf32>
  }
}
