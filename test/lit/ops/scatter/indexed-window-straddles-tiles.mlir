// case 3, of windows longer than one element: a window of 3 rows may begin on one tile and end on the next. The tile is
// padded on both sides by the 2 rows that may stick out, written, and cut out again. Nothing is communicated.
// RUN: shardpass-opt %s partition | FileCheck %s
// RUN: shardpass-run %s partition --devices 4 --check

// 16 rows over 4 devices are 4, and 2 + 4 + 2 = 8 with the padding. A window begins at 16 - 3 = 13 at most.
// CHECK-LABEL: func.func @main(%arg0: tensor<4x4xf32>
// CHECK-NOT: channel_handle
// CHECK: stablehlo.constant dense<13>
// CHECK: %[[WIDE:.*]] = stablehlo.pad %arg0, %{{.*}}, low = [2, 0], high = [2, 0], interior = [0, 0]
// CHECK: %[[WRITTEN:.*]] = "stablehlo.scatter"(%[[WIDE]]
// CHECK: -> tensor<8x4xf32>
// CHECK: stablehlo.slice %[[WRITTEN]] [2:6, 0:4]
// CHECK-NOT: channel_handle
module attributes {mhlo.num_partitions = 4 : i32} {
  func.func @main(%x: tensor<16x4xf32> {mhlo.sharding = "{devices=[4,1]<=[4]}"}, %i: tensor<2x1xi32>,
      %u: tensor<2x3x4xf32>) -> tensor<16x4xf32> {
    %0 = "stablehlo.scatter"(%x, %i, %u) <{scatter_dimension_numbers = #stablehlo.scatter<update_window_dims = [1, 2],
      scatter_dims_to_operand_dims = [0], index_vector_dim = 1>}> ({
      ^bb0(%old: tensor<f32>, %new: tensor<f32>):
        %1 = stablehlo.add %old, %new : tensor<f32>
        stablehlo.return %1 : tensor<f32>
    }) : (tensor<16x4xf32>, tensor<2x1xi32>, tensor<2x3x4xf32>) -> tensor<16x4xf32>
    return %0 : tensor<16x4xf32>
  }
}
