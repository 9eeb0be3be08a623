// case 2: a dimension whose slices are as long as the dimension is a dimension of the result. Split, each device takes
// its part of every slice.
// RUN: shardpass-opt %s partition | FileCheck %s
// RUN: shardpass-run %s partition --devices 4 --check

// 8 columns over 4 devices are 2: of the operand, of the slice and of the result.
// CHECK-LABEL: func.func @main(
// CHECK-NOT: channel_handle
// CHECK: "stablehlo.gather"(%arg0, %arg1)
// CHECK-SAME: slice_sizes = array<i64: 1, 2>
// CHECK-SAME: (tensor<6x2xf32>, tensor<5x1xi32>) -> tensor<5x2xf32>
// CHECK-NOT: channel_handle
module attributes {mhlo.num_partitions = 4 : i32} {
  func.func @main(%x: tensor<6x8xf32> {mhlo.sharding = "{devices=[1,4]<=[4]}"}, %i: tensor<5x1xi32>)
      -> tensor<5x8xf32> {
    %0 = "stablehlo.gather"(%x, %i) <{dimension_numbers = #stablehlo.gather<offset_dims = [1],
      collapsed_slice_dims = [0], start_index_map = [0], index_vector_dim = 1>,
      slice_sizes = array<i64: 1, 8>}> : (tensor<6x8xf32>, tensor<5x1xi32>) -> tensor<5x8xf32>
    return %0 : tensor<5x8xf32>
  }
}
