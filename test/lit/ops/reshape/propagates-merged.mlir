// Two dimensions become one: the major one's split carries over; the minor one's only behind a whole major split.
// RUN: shardpass-opt %s "propagate{effort=0}" --split-input-file | FileCheck %s

// CHECK-LABEL: module @major_split_carries_over
// CHECK: stablehlo.reshape %{{.*}} {mhlo.sharding = "{devices=[2,2]<=[4] last_tile_dim_replicate}"} : (tensor<4x6xf32>) -> tensor<24xf32>
module @major_split_carries_over {
  func.func @main(%x: tensor<4x6xf32> {mhlo.sharding = "{devices=[2,1,2]<=[4] last_tile_dim_replicate}"}) -> tensor<24xf32> {
    %0 = stablehlo.reshape %x : (tensor<4x6xf32>) -> tensor<24xf32>
    return %0 : tensor<24xf32>
  }
}

// -----

// Both: 2 rows over the major axis, columns over the minor one: 4 runs of 3 elements.
// CHECK-LABEL: module @both_dimensions_split
// CHECK: stablehlo.reshape %{{.*}} {mhlo.sharding = "{devices=[4]<=[4]}"} : (tensor<2x6xf32>) -> tensor<12xf32>
module @both_dimensions_split {
  func.func @main(%x: tensor<2x6xf32> {mhlo.sharding = "{devices=[2,2]<=[4]}"}) -> tensor<12xf32> {
    %0 = stablehlo.reshape %x : (tensor<2x6xf32>) -> tensor<12xf32>
    return %0 : tensor<12xf32>
  }
}

// -----

// Columns alone are no run of the merged dimension.
// CHECK-LABEL: module @minor_dimension_alone
// CHECK: stablehlo.reshape %{{.*}} {mhlo.sharding = "{replicated}"} : (tensor<2x6xf32>) -> tensor<12xf32>
module @minor_dimension_alone {
  func.func @main(%x: tensor<2x6xf32> {mhlo.sharding = "{devices=[1,2]<=[2]}"}) -> tensor<12xf32> {
    %0 = stablehlo.reshape %x : (tensor<2x6xf32>) -> tensor<12xf32>
    return %0 : tensor<12xf32>
  }
}
