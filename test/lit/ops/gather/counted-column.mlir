// case 4: one column of the indices counts 0, 1, 2, ... along the rows, as `x[arange(8), i]` has it. The row that is
// wanted is always on the device that wants it, so positions are shifted into the tile and nothing moves.
// RUN: shardpass-opt %s partition | FileCheck %s
// RUN: shardpass-run %s partition --devices 4 --check

// 8 rows over 4 devices: device d holds rows 2d and 2d + 1 of the operand, of the indices and of the result.
// CHECK-LABEL: func.func @main(
// CHECK-NOT: channel_handle
// CHECK: %[[SHIFT:.*]] = stablehlo.broadcast_in_dim %{{.*}} -> tensor<2xi32>
// CHECK: stablehlo.subtract %{{.*}}, %[[SHIFT]] : tensor<2xi32>
// CHECK: "stablehlo.gather"(%arg0, %{{.*}}) {{.*}} : (tensor<2x6xf32>, tensor<2x2xi32>) -> tensor<2xf32>
// CHECK-NOT: stablehlo.select
// CHECK-NOT: channel_handle
module attributes {mhlo.num_partitions = 4 : i32} {
  func.func @main(%x: tensor<8x6xf32> {mhlo.sharding = "{devices=[4,1]<=[4]}"}, %i: tensor<8x1xi32>) -> tensor<8xf32> {
    %n = stablehlo.iota dim = 0 : tensor<8x1xi32>
    %j = stablehlo.concatenate %n, %i, dim = 1 : (tensor<8x1xi32>, tensor<8x1xi32>) -> tensor<8x2xi32>
    %0 = "stablehlo.gather"(%x, %j) <{dimension_numbers = #stablehlo.gather<
      collapsed_slice_dims = [0, 1], start_index_map = [0, 1], index_vector_dim = 1>,
      slice_sizes = array<i64: 1, 1>}> : (tensor<8x6xf32>, tensor<8x2xi32>) -> tensor<8xf32>
    return %0 : tensor<8xf32>
  }
}
