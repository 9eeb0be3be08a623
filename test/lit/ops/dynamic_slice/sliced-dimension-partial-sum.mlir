// A slice of 3 rows of a split array, from a position that only the data knows: each device puts the rows that it has
// into a slice full of nothing, and an all_reduce of the slice joins the parts. The array stays where it is.
// RUN: shardpass-opt %s "partition{effort=0}" | FileCheck %s
// RUN: shardpass-run %s "partition{effort=0}" --devices 4 --check

// Positions are clamped to 16 - 3 = 13 at most, before the first row of the tile is subtracted.
// CHECK-LABEL: func.func @main(%arg0: tensor<4x8xf32>
// CHECK: %[[LAST:.*]] = stablehlo.constant dense<13> : tensor<i32>
// CHECK: stablehlo.clamp %{{.*}}, %arg1, %[[LAST]] : tensor<i32>
// CHECK: stablehlo.dynamic_slice %arg0, {{.*}} sizes = [3, 8]
// CHECK: "stablehlo.all_reduce"
// CHECK: shardpass.cause = "partial results of stablehlo.dynamic_slice"
// CHECK-SAME: (tensor<3x8xf32>) -> tensor<3x8xf32>
// CHECK-NOT: channel_handle
module attributes {mhlo.num_partitions = 4 : i32} {
  func.func @main(%x: tensor<16x8xf32> {mhlo.sharding = "{devices=[4,1]<=[4]}"}, %at: tensor<i32>) -> tensor<3x8xf32> {
    %zero = stablehlo.constant dense<0> : tensor<i32>
    %0 = stablehlo.dynamic_slice %x, %at, %zero, sizes = [3, 8]
      : (tensor<16x8xf32>, tensor<i32>, tensor<i32>) -> tensor<3x8xf32>
    return %0 : tensor<3x8xf32>
  }
}
