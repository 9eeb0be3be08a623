// An update of 3 rows may begin on one tile and end on the next. Each device rewrites 3 rows of its tile, chosen row by
// row between the update and what stood there. Nothing is communicated.
// RUN: shardpass-opt %s partition | FileCheck %s
// RUN: shardpass-run %s partition --devices 4 --check

// CHECK-LABEL: func.func @main(%arg0: tensor<4x8xf32>
// CHECK-NOT: channel_handle
// CHECK: %[[OLD:.*]] = stablehlo.dynamic_slice %arg0, {{.*}} sizes = [3, 8]
// CHECK: %[[NEW:.*]] = stablehlo.select %{{.*}}, %{{.*}}, %[[OLD]] : tensor<3x8xi1>, tensor<3x8xf32>
// CHECK: stablehlo.dynamic_update_slice %arg0, %[[NEW]]
// CHECK-SAME: -> tensor<4x8xf32>
// CHECK-NOT: channel_handle
module attributes {mhlo.num_partitions = 4 : i32} {
  func.func @main(%x: tensor<16x8xf32> {mhlo.sharding = "{devices=[4,1]<=[4]}"}, %u: tensor<3x8xf32>, %at: tensor<i32>)
      -> (tensor<16x8xf32> {mhlo.sharding = "{devices=[4,1]<=[4]}"}) {
    %zero = stablehlo.constant dense<0> : tensor<i32>
    %0 = stablehlo.dynamic_update_slice %x, %u, %at, %zero
      : (tensor<16x8xf32>, tensor<3x8xf32>, tensor<i32>, tensor<i32>) -> tensor<16x8xf32>
    return %0 : tensor<16x8xf32>
  }
}
