// One row of a cache that is split over its rows: read, chosen, written. Nothing is communicated, and no tile is
// copied.
// RUN: shardpass-opt %s partition | FileCheck %s
// RUN: shardpass-run %s partition --devices 4 --check

module attributes {mhlo.num_partitions = 4 : i32} {
  // CHECK-LABEL: func.func public @main
  // CHECK-NOT: replica_groups
  // CHECK: %[[OLD:.*]] = stablehlo.dynamic_slice %arg0, {{.*}} sizes = [1, 8]
  // CHECK: %[[NEW:.*]] = stablehlo.select %{{.*}}, %arg1, %[[OLD]] : tensor<i1>, tensor<1x8xf32>
  // CHECK: stablehlo.dynamic_update_slice %arg0, %[[NEW]]
  // CHECK-SAME: -> tensor<4x8xf32>
  // CHECK-NOT: replica_groups
  func.func public @main(%cache: tensor<16x8xf32> {mhlo.sharding = "{devices=[4,1]<=[4]}"}, %row: tensor<1x8xf32>,
      %at: tensor<i32>) -> (tensor<16x8xf32> {mhlo.sharding = "{devices=[4,1]<=[4]}"}) {
    %zero = stablehlo.constant dense<0> : tensor<i32>
    %0 = stablehlo.dynamic_update_slice %cache, %row, %at, %zero
      : (tensor<16x8xf32>, tensor<1x8xf32>, tensor<i32>, tensor<i32>) -> tensor<16x8xf32>
    return %0 : tensor<16x8xf32>
  }
}
