// case 3: a table that is split over its rows, as an embedding over a vocabulary is. Positions are shifted into the
// tile and looked up under a mask, and one sum over devices joins the parts. The table stays where it is.
// RUN: shardpass-opt %s "partition{effort=0}" | FileCheck %s
// RUN: shardpass-run %s "partition{effort=0}" --devices 4 --check

// 30 rows over 4 devices are ceil(30 / 4) = 8; a position is at most 29, before the first row of the tile is subtracted.
// CHECK-LABEL: func.func public @main
// CHECK-SAME: %arg0: tensor<8x16xf32>
// CHECK-NOT: all_gather
// CHECK: %[[LAST:.*]] = stablehlo.constant dense<29>
// CHECK: stablehlo.clamp %{{.*}}, %{{.*}}, %[[LAST]]
// CHECK: %[[START:.*]] = stablehlo.broadcast_in_dim
// CHECK: %[[HERE:.*]] = stablehlo.subtract %{{.*}}, %[[START]]
// CHECK: %[[ROWS:.*]] = "stablehlo.gather"(%arg0, %[[HERE]])
// CHECK-SAME: slice_sizes = array<i64: 1, 16>
// CHECK-SAME: (tensor<8x16xf32>, tensor<6xi32>) -> tensor<6x16xf32>
// CHECK: %[[PART:.*]] = stablehlo.select %{{.*}}, %[[ROWS]]
// CHECK: "stablehlo.all_reduce"(%[[PART]])
// CHECK-SAME{LITERAL}: replica_groups = dense<[[0, 1, 2, 3]]>
// CHECK: shardpass.cause = "partial results of stablehlo.gather"
// CHECK-NOT: channel_handle
module attributes {mhlo.num_partitions = 4 : i32} {
  func.func public @main(%table: tensor<30x16xf32> {mhlo.sharding = "{devices=[4,1]<=[4]}"}, %ids: tensor<6xi32>)
      -> tensor<6x16xf32> {
    %five = stablehlo.constant dense<5> : tensor<6xi32>
    %spread = stablehlo.multiply %ids, %five : tensor<6xi32>
    %0 = "stablehlo.gather"(%table, %spread) <{dimension_numbers = #stablehlo.gather<offset_dims = [1],
      collapsed_slice_dims = [0], start_index_map = [0], index_vector_dim = 1>,
      slice_sizes = array<i64: 1, 16>}> : (tensor<30x16xf32>, tensor<6xi32>) -> tensor<6x16xf32>
    return %0 : tensor<6x16xf32>
  }
}
