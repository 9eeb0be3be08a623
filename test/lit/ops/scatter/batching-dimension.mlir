// case 1: a batching dimension of the operand goes with that of the indices and of the updates, so nothing moves.
// RUN: shardpass-opt %s partition | FileCheck %s
// RUN: shardpass-run %s partition --devices 4 --check

// 8 over 4 devices is 2, on all three.
// CHECK-LABEL: func.func @main(
// CHECK-NOT: channel_handle
// CHECK: "stablehlo.scatter"(%arg0, %arg1, %arg2)
// CHECK: (tensor<2x6xf32>, tensor<2x2x1xi32>, tensor<2x2xf32>) -> tensor<2x6xf32>
// CHECK-NOT: channel_handle
module attributes {mhlo.num_partitions = 4 : i32} {
  func.func @main(%x: tensor<8x6xf32> {mhlo.sharding = "{devices=[4,1]<=[4]}"}, %i: tensor<8x2x1xi32>,
      %u: tensor<8x2xf32>) -> tensor<8x6xf32> {
    %0 = "stablehlo.scatter"(%x, %i, %u) <{scatter_dimension_numbers = #stablehlo.scatter<
      inserted_window_dims = [1], input_batching_dims = [0], scatter_indices_batching_dims = [0],
      scatter_dims_to_operand_dims = [1], index_vector_dim = 2>}> ({
      ^bb0(%old: tensor<f32>, %new: tensor<f32>):
        %1 = stablehlo.add %old, %new : tensor<f32>
        stablehlo.return %1 : tensor<f32>
    }) : (tensor<8x6xf32>, tensor<8x2x1xi32>, tensor<8x2xf32>) -> tensor<8x6xf32>
    return %0 : tensor<8x6xf32>
  }
}
