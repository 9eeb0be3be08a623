// case 5: every update writes the first 6 of 16 columns, and no index says otherwise. The dimension is needed whole,
// and a remark says what gathering it costs.
// RUN: shardpass-opt %s 'partition{effort=0}' --verify-diagnostics | FileCheck %s
// RUN: shardpass-run %s partition --devices 4 --check

// A device lacks 8 rows of 12 columns of 4 bytes: 384.
// CHECK-LABEL: func.func @main(
// CHECK: %[[WHOLE:.*]] = "stablehlo.all_gather"(%arg0)
// CHECK-SAME: (tensor<8x4xf32>) -> tensor<8x16xf32>
// CHECK: "stablehlo.scatter"(%[[WHOLE]], %arg1, %arg2)
// CHECK-NOT: channel_handle
// CHECK: -> tensor<8x4xf32>
module attributes {mhlo.num_partitions = 4 : i32} {
  func.func @main(%x: tensor<8x16xf32> {mhlo.sharding = "{devices=[1,4]<=[4]}"}, %i: tensor<2x1xi32>,
      %u: tensor<2x6xf32>) -> tensor<8x16xf32> {
    // expected-remark@below {{needs dimension 1 of its operand 0 (tensor<8x16xf32>) in full on each device; 384 bytes are gathered}}
    %0 = "stablehlo.scatter"(%x, %i, %u) <{scatter_dimension_numbers = #stablehlo.scatter<update_window_dims = [1],
      inserted_window_dims = [0], scatter_dims_to_operand_dims = [0], index_vector_dim = 1>}> ({
      ^bb0(%old: tensor<f32>, %new: tensor<f32>):
        %1 = stablehlo.add %old, %new : tensor<f32>
        stablehlo.return %1 : tensor<f32>
    }) : (tensor<8x16xf32>, tensor<2x1xi32>, tensor<2x6xf32>) -> tensor<8x16xf32>
    return %0 : tensor<8x16xf32>
  }
}
