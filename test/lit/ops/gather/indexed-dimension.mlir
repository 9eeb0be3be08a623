// A table split over its rows: positions are shifted, looked up under a mask, and one sum over devices joins the parts.
// RUN: shardpass-opt %s partition | FileCheck %s

module attributes {mhlo.num_partitions = 4 : i32} {
  // CHECK-LABEL: func.func public @main
  // CHECK-SAME: %arg0: tensor<1000x16xf32>
  // CHECK-NOT: all_gather
  // CHECK: stablehlo.clamp
  // CHECK: %[[START:.*]] = stablehlo.broadcast_in_dim
  // CHECK: %[[HERE:.*]] = stablehlo.subtract %{{.*}}, %[[START]]
  // CHECK: %[[ROWS:.*]] = "stablehlo.gather"(%arg0, %[[HERE]])
  // CHECK-SAME: slice_sizes = array<i64: 1, 16>
  // CHECK-SAME: (tensor<1000x16xf32>, tensor<6xi32>) -> tensor<6x16xf32>
  // CHECK: %[[PART:.*]] = stablehlo.select %{{.*}}, %[[ROWS]]
  // CHECK: "stablehlo.all_reduce"(%[[PART]])
  // CHECK: shardpass.cause = "partial results of stablehlo.gather"
  func.func public @main(%table: tensor<4000x16xf32> {mhlo.sharding = "{devices=[4,1]<=[4]}"}, %ids: tensor<6xi32>)
      -> tensor<6x16xf32> {
    %0 = "stablehlo.gather"(%table, %ids) <{dimension_numbers = #stablehlo.gather<offset_dims = [1],
      collapsed_slice_dims = [0], start_index_map = [0], index_vector_dim = 1>,
      slice_sizes = array<i64: 1, 16>}> : (tensor<4000x16xf32>, tensor<6xi32>) -> tensor<6x16xf32>
    return %0 : tensor<6x16xf32>
  }
}
