// What the user fixed is unchanged, replicated values too; only open dimensions are split further.
// RUN: shardpass-opt %s propagate --split-input-file | FileCheck %s

// CHECK-LABEL: module @constraint_stays
// CHECK: func.func @main(
// CHECK-SAME: tensor<8x8xf32> {mhlo.sharding = "{devices=[2,1]<=[2]}"})
// CHECK-SAME: -> (tensor<8x8xf32> {mhlo.sharding = "{replicated}"})
// CHECK: stablehlo.negate %{{.*}} {mhlo.sharding = "{devices=[1,2]<=[2]}", shardpass.pinned}
module @constraint_stays {
  func.func @main(%x: tensor<8x8xf32> {mhlo.sharding = "{devices=[2,1]<=[2]}"}) -> (tensor<8x8xf32> {mhlo.sharding = "{replicated}"}) {
    %0 = stablehlo.negate %x {mhlo.sharding = "{devices=[1,2]<=[2]}"} : tensor<8x8xf32>
    return %0 : tensor<8x8xf32>
  }
}

// -----

// Dimension 1 of the constraint is open and takes what comes from %x; dimension 0 is closed and takes nothing.
// CHECK-LABEL: module @open_dimension_alone_is_split
// CHECK: stablehlo.custom_call @Sharding
// CHECK-SAME: mhlo.sharding = "{devices=[1,2,2]<=[2,2]T(1,0) last_tile_dim_replicate}"
// CHECK-NOT: unspecified_dims
module @open_dimension_alone_is_split {
  func.func @main(%x: tensor<8x8xf32> {mhlo.sharding = "{devices=[2,2]<=[4]}"}) -> (tensor<8x8xf32> {mhlo.sharding = "{replicated}"}) {
    %0 = stablehlo.custom_call @Sharding(%x) {backend_config = "unspecified_dims=[1]", mhlo.sharding = "{replicated}"} : (tensor<8x8xf32>) -> tensor<8x8xf32>
    return %0 : tensor<8x8xf32>
  }
}
