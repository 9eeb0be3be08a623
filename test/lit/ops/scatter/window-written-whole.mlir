// case 2: a dimension that every update writes whole is a dimension of the updates. Split, each device writes its part.
// RUN: shardpass-opt %s partition | FileCheck %s
// RUN: shardpass-run %s partition --devices 4 --check

// 8 columns over 4 devices are 2: of the operand, of the updates and of the result.
// CHECK-LABEL: func.func @main(
// CHECK-NOT: channel_handle
// CHECK: "stablehlo.scatter"(%arg0, %arg1, %arg2)
// CHECK: (tensor<6x2xf32>, tensor<3x1xi32>, tensor<3x2xf32>) -> tensor<6x2xf32>
// CHECK-NOT: channel_handle
module attributes {mhlo.num_partitions = 4 : i32} {
  func.func @main(%x: tensor<6x8xf32> {mhlo.sharding = "{devices=[1,4]<=[4]}"}, %i: tensor<3x1xi32>,
      %u: tensor<3x8xf32>) -> tensor<6x8xf32> {
    %0 = "stablehlo.scatter"(%x, %i, %u) <{scatter_dimension_numbers = #stablehlo.scatter<update_window_dims = [1],
      inserted_window_dims = [0], scatter_dims_to_operand_dims = [0], index_vector_dim = 1>}> ({
      ^bb0(%old: tensor<f32>, %new: tensor<f32>):
        %1 = stablehlo.add %old, %new : tensor<f32>
        stablehlo.return %1 : tensor<f32>
    }) : (tensor<6x8xf32>, tensor<3x1xi32>, tensor<3x8xf32>) -> tensor<6x8xf32>
    return %0 : tensor<6x8xf32>
  }
}
