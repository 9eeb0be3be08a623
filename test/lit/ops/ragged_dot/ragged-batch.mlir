// case 3: groups of a batch change nothing. The op is a dot_general whose batch is split, and the sizes are not looked
// at.
// RUN: shardpass-opt %s partition | FileCheck %s
// RUN: shardpass-run %s partition --devices 4 --check

// CHECK-LABEL: func.func @main(
// CHECK-NEXT: stablehlo.dot_general %arg0, %arg1, batching_dims = [0] x [0], contracting_dims = [2] x [1]
// CHECK-SAME: (tensor<1x3x6xf32>, tensor<1x6x5xf32>) -> tensor<1x3x5xf32>
// CHECK-NEXT: return
module attributes {mhlo.num_partitions = 4 : i32} {
  func.func @main(%l: tensor<4x3x6xf32> {mhlo.sharding = "{devices=[4,1,1]<=[4]}"}, %r: tensor<4x6x5xf32>, %s: tensor<3xi32>)
      -> tensor<4x3x5xf32> {
    %0 = "chlo.ragged_dot"(%l, %r, %s) <{ragged_dot_dimension_numbers = #chlo.ragged_dot<lhs_batching_dimensions = [0],
        rhs_batching_dimensions = [0], lhs_contracting_dimensions = [2], rhs_contracting_dimensions = [1],
        lhs_ragged_dimensions = [0]>}> : (tensor<4x3x6xf32>, tensor<4x6x5xf32>, tensor<3xi32>) -> tensor<4x3x5xf32>
    return %0 : tensor<4x3x5xf32>
  }
}
