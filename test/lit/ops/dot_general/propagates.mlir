// Batching and free dimensions carry their split to the result, a contracting one to the other operand.
// RUN: shardpass-opt %s 'propagate{effort=0}' --split-input-file | FileCheck %s

// Batch over the major axis, the left free dimension over the minor one.
// CHECK-LABEL: module @batching_and_free_dimensions
// CHECK: func.func @main(
// CHECK-SAME: tensor<4x8x16xf32> {mhlo.sharding = "{devices=[2,2,1]<=[4]}"},
// CHECK-SAME: tensor<4x16x32xf32> {mhlo.sharding = "{devices=[2,1,1,2]<=[4] last_tile_dim_replicate}"})
// CHECK: stablehlo.dot_general {{.*}} {mhlo.sharding = "{devices=[2,2,1]<=[4]}"} : {{.*}} -> tensor<4x8x32xf32>
module @batching_and_free_dimensions {
  func.func @main(%x: tensor<4x8x16xf32> {mhlo.sharding = "{devices=[2,2,1]<=[4]}"}, %y: tensor<4x16x32xf32>) -> tensor<4x8x32xf32> {
    %0 = stablehlo.dot_general %x, %y, batching_dims = [0] x [0], contracting_dims = [2] x [1] : (tensor<4x8x16xf32>, tensor<4x16x32xf32>) -> tensor<4x8x32xf32>
    return %0 : tensor<4x8x32xf32>
  }
}

// -----

// The contracting dimension: the other operand is split alike; the result is not split, it will be a sum of parts.
// CHECK-LABEL: module @contracting_dimension
// CHECK: func.func @main(
// CHECK-SAME: tensor<8x16xf32> {mhlo.sharding = "{devices=[1,2]<=[2]}"},
// CHECK-SAME: tensor<16x32xf32> {mhlo.sharding = "{devices=[2,1]<=[2]}"})
// CHECK: stablehlo.dot_general {{.*}} {mhlo.sharding = "{replicated}"}
module @contracting_dimension {
  func.func @main(%x: tensor<8x16xf32> {mhlo.sharding = "{devices=[1,2]<=[2]}"}, %y: tensor<16x32xf32>) -> tensor<8x32xf32> {
    %0 = stablehlo.dot_general %x, %y, contracting_dims = [1] x [0] : (tensor<8x16xf32>, tensor<16x32xf32>) -> tensor<8x32xf32>
    return %0 : tensor<8x32xf32>
  }
}
