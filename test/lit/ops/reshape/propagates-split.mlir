// One dimension becomes two: the split goes to the major part first, and over into the minor one.
// RUN: shardpass-opt %s 'propagate{effort=0}' --split-input-file | FileCheck %s

// 4 shards of 24 are 4 shards of the major 4.
// CHECK-LABEL: module @split_of_the_major_dimension
// CHECK: stablehlo.reshape %{{.*}} {mhlo.sharding = "{devices=[4,1]<=[4]}"} : (tensor<24xf32>) -> tensor<4x6xf32>
module @split_of_the_major_dimension {
  func.func @main(%x: tensor<24xf32> {mhlo.sharding = "{devices=[4]<=[4]}"}) -> tensor<4x6xf32> {
    %0 = stablehlo.reshape %x : (tensor<24xf32>) -> tensor<4x6xf32>
    return %0 : tensor<4x6xf32>
  }
}

// -----

// 4 shards of 24 are 2 of the major 2, and of each of these, 2 of the minor 12.
// CHECK-LABEL: module @split_of_major_and_minor
// CHECK: stablehlo.reshape %{{.*}} {mhlo.sharding = "{devices=[2,2]<=[4]}"} : (tensor<24xf32>) -> tensor<2x12xf32>
module @split_of_major_and_minor {
  func.func @main(%x: tensor<24xf32> {mhlo.sharding = "{devices=[4]<=[4]}"}) -> tensor<2x12xf32> {
    %0 = stablehlo.reshape %x : (tensor<24xf32>) -> tensor<2x12xf32>
    return %0 : tensor<2x12xf32>
  }
}

// -----

// 2 shards of 24 are one row and a half of 8: rows are split unevenly, 2 and 1, and half a row will move.
// CHECK-LABEL: module @uneven_rows
// CHECK: stablehlo.reshape %{{.*}} {mhlo.sharding = "{devices=[2,1]<=[2]}"} : (tensor<24xf32>) -> tensor<3x8xf32>
module @uneven_rows {
  func.func @main(%x: tensor<24xf32> {mhlo.sharding = "{devices=[2]<=[2]}"}) -> tensor<3x8xf32> {
    %0 = stablehlo.reshape %x : (tensor<24xf32>) -> tensor<3x8xf32>
    %1 = stablehlo.negate %0 : tensor<3x8xf32>
    return %1 : tensor<3x8xf32>
  }
}
