// case 3, of slices longer than one element: a slice of 3 rows may begin on one tile and end on the next. The tile is
// padded by 3 rows of nothing on both sides, so that each device finds its rows of the slice in place; a sum joins
// them.
// RUN: shardpass-opt %s 'partition{effort=0}' | FileCheck %s
// RUN: shardpass-run %s 'partition{effort=0}' --devices 4 --check

// 8 rows over 4 devices are 2, and 3 + 2 + 3 = 8 with the padding. A slice begins at 8 - 3 = 5 at most.
// CHECK-LABEL: func.func @main(%arg0: tensor<2x256xf32>
// CHECK-DAG: %[[NOTHING:.*]] = stablehlo.constant dense<-0.000000e+00> : tensor<f32>
// CHECK-DAG: stablehlo.constant dense<5> : tensor<1xi32>
// CHECK: stablehlo.clamp
// CHECK: %[[WIDE:.*]] = stablehlo.pad %arg0, %[[NOTHING]], low = [3, 0], high = [3, 0]
// CHECK: %[[PART:.*]] = "stablehlo.gather"(%[[WIDE]]
// CHECK-SAME: (tensor<8x256xf32>, tensor<1xi32>) -> tensor<1x3x256xf32>
// CHECK: "stablehlo.all_reduce"(%[[PART]])
// CHECK: shardpass.cause = "partial results of stablehlo.gather"
// CHECK-NOT: channel_handle
module attributes {mhlo.num_partitions = 4 : i32} {
  func.func @main(%x: tensor<8x256xf32> {mhlo.sharding = "{devices=[4,1]<=[4]}"}, %i: tensor<1x1xi32>)
      -> tensor<1x3x256xf32> {
    %0 = "stablehlo.gather"(%x, %i) <{dimension_numbers = #stablehlo.gather<offset_dims = [1, 2],
      start_index_map = [0], index_vector_dim = 1>,
      slice_sizes = array<i64: 3, 256>}> : (tensor<8x256xf32>, tensor<1x1xi32>) -> tensor<1x3x256xf32>
    return %0 : tensor<1x3x256xf32>
  }
}
