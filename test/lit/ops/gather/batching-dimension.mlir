// case 1: a batching dimension of the operand goes with that of the indices and of the result, so nothing moves.
// RUN: shardpass-opt %s partition | FileCheck %s
// RUN: shardpass-run %s partition --devices 4 --check

// 8 over 4 devices is 2, on all three.
// CHECK-LABEL: func.func @main(
// CHECK-NOT: channel_handle
// CHECK: "stablehlo.gather"(%arg0, %arg1)
// CHECK-SAME: slice_sizes = array<i64: 1, 1, 3>
// CHECK-SAME: (tensor<2x6x3xf32>, tensor<2x5x1xi32>) -> tensor<2x5x3xf32>
// CHECK-NOT: channel_handle
module attributes {mhlo.num_partitions = 4 : i32} {
  func.func @main(%x: tensor<8x6x3xf32> {mhlo.sharding = "{devices=[4,1,1]<=[4]}"}, %i: tensor<8x5x1xi32>)
      -> tensor<8x5x3xf32> {
    %0 = "stablehlo.gather"(%x, %i) <{dimension_numbers = #stablehlo.gather<offset_dims = [2],
      collapsed_slice_dims = [1], operand_batching_dims = [0], start_indices_batching_dims = [0], start_index_map = [1],
      index_vector_dim = 2>, slice_sizes = array<i64: 1, 1, 3>}>
      : (tensor<8x6x3xf32>, tensor<8x5x1xi32>) -> tensor<8x5x3xf32>
    return %0 : tensor<8x5x3xf32>
  }
}
