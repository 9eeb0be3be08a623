// case 1: rows in groups, each group with a right side of its own (an expert). Experts are split over devices: each one
// multiplies the rows of its expert, all others being zero, and a sum over devices joins the rows. No expert moves.
// RUN: shardpass-opt %s 'partition{effort=0}' | FileCheck %s

// CHECK-LABEL: func.func @main(%arg0: tensor<16x16xf32> {{.*}}, %arg1: tensor<1x16x32xf32>
// CHECK-NOT: channel_handle
// CHECK: %[[MINE:.*]] = stablehlo.select %{{.*}} : tensor<1x16x16xi1>, tensor<1x16x16xf32>
// CHECK: %[[PART:.*]] = stablehlo.dot_general %[[MINE]], %arg1
// CHECK-SAME: (tensor<1x16x16xf32>, tensor<1x16x32xf32>) -> tensor<16x32xf32>
// CHECK: "stablehlo.all_reduce"(%[[PART]])
// CHECK: (tensor<16x32xf32>) -> tensor<16x32xf32>
// CHECK-NOT: channel_handle
module attributes {mhlo.num_partitions = 4 : i32} {
  func.func @main(%l: tensor<16x16xf32>, %r: tensor<4x16x32xf32> {mhlo.sharding = "{devices=[4,1,1]<=[4]}"},
      %s: tensor<4xi32> {mhlo.sharding = "{replicated}"}) -> tensor<16x32xf32> {
    %0 = "chlo.ragged_dot"(%l, %r, %s) <{ragged_dot_dimension_numbers = #chlo.ragged_dot<lhs_contracting_dimensions = [1],
        rhs_contracting_dimensions = [1], lhs_ragged_dimensions = [0], rhs_group_dimensions = [0]>}>
        : (tensor<16x16xf32>, tensor<4x16x32xf32>, tensor<4xi32>) -> tensor<16x32xf32>
    return %0 : tensor<16x32xf32>
  }
}
