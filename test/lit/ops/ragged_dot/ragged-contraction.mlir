// case 2: contracted elements in groups give a product for each group. With the columns of the right side split each
// device makes its columns of every product, and nothing moves.
// RUN: shardpass-opt %s partition | FileCheck %s

// CHECK-LABEL: func.func @main(
// CHECK-NOT: channel_handle
// CHECK: stablehlo.dot_general %{{.*}}, %{{.*}}, batching_dims = [0] x [0], contracting_dims = [2] x [1]
// CHECK-SAME: (tensor<3x5x9xf32>, tensor<3x9x2xf32>) -> tensor<3x5x2xf32>
// CHECK-NOT: channel_handle
module attributes {mhlo.num_partitions = 4 : i32} {
  func.func @main(%l: tensor<5x9xf32>, %r: tensor<9x8xf32> {mhlo.sharding = "{devices=[1,4]<=[4]}"}, %s: tensor<3xi32>)
      -> tensor<3x5x8xf32> {
    %0 = "chlo.ragged_dot"(%l, %r, %s) <{ragged_dot_dimension_numbers = #chlo.ragged_dot<lhs_contracting_dimensions = [1],
        rhs_contracting_dimensions = [0], lhs_ragged_dimensions = [1]>}>
        : (tensor<5x9xf32>, tensor<9x8xf32>, tensor<3xi32>) -> tensor<3x5x8xf32>
    return %0 : tensor<3x5x8xf32>
  }
}
