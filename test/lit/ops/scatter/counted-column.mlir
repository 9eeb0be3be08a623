// case 4: one column of the indices counts 0, 1, 2, ... along the rows, as `x.at[arange(8), i].add(u)` has it. An
// update and the row that it changes are on the same device, so nothing moves.
// RUN: shardpass-opt %s partition | FileCheck %s
// RUN: shardpass-run %s partition --devices 4 --check

// 8 rows over 4 devices: device d holds rows 2d and 2d + 1 of the operand, of the indices and of the updates.
// CHECK-LABEL: func.func @main(
// CHECK-NOT: channel_handle
// CHECK: %[[SHIFT:.*]] = stablehlo.broadcast_in_dim %{{.*}} -> tensor<2xi32>
// CHECK: stablehlo.subtract %{{.*}}, %[[SHIFT]] : tensor<2xi32>
// CHECK: "stablehlo.scatter"(%arg0
// CHECK: (tensor<2x6xf32>, tensor<2x2xi32>, tensor<2xf32>) -> tensor<2x6xf32>
// CHECK-NOT: channel_handle
module attributes {mhlo.num_partitions = 4 : i32} {
  func.func @main(%x: tensor<8x6xf32> {mhlo.sharding = "{devices=[4,1]<=[4]}"}, %i: tensor<8x1xi32>, %u: tensor<8xf32>)
      -> tensor<8x6xf32> {
    %n = stablehlo.iota dim = 0 : tensor<8x1xi32>
    %j = stablehlo.concatenate %n, %i, dim = 1 : (tensor<8x1xi32>, tensor<8x1xi32>) -> tensor<8x2xi32>
    %0 = "stablehlo.scatter"(%x, %j, %u) <{scatter_dimension_numbers = #stablehlo.scatter<
      inserted_window_dims = [0, 1], scatter_dims_to_operand_dims = [0, 1], index_vector_dim = 1>}> ({
      ^bb0(%old: tensor<f32>, %new: tensor<f32>):
        %1 = stablehlo.add %old, %new : tensor<f32>
        stablehlo.return %1 : tensor<f32>
    }) : (tensor<8x6xf32>, tensor<8x2xi32>, tensor<8xf32>) -> tensor<8x6xf32>
    return %0 : tensor<8x6xf32>
  }
}
