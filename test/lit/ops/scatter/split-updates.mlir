// Updates split over devices leave partial sums. The operand counts on the first part alone; -0.0 elsewhere.
// RUN: shardpass-opt %s "partition{effort=0}" | FileCheck %s
// RUN: shardpass-run %s "partition{effort=0}" --devices 4 --check

module attributes {mhlo.num_partitions = 4 : i32} {
  // CHECK-LABEL: func.func public @main
  // CHECK: %[[FIRST:.*]] = stablehlo.compare EQ
  // CHECK: %[[BASE:.*]] = stablehlo.select %[[FIRST]], %arg0, %{{.*}} : tensor<i1>, tensor<8xf32>
  // CHECK: %[[SUM:.*]] = "stablehlo.scatter"(%[[BASE]],
  // CHECK: "stablehlo.all_reduce"(%[[SUM]])
  func.func public @main(%x: tensor<8xf32>, %i: tensor<4000x1xi32> {mhlo.sharding = "{devices=[4,1]<=[4]}"},
      %u: tensor<4000xf32> {mhlo.sharding = "{devices=[4]<=[4]}"}) -> tensor<8xf32> {
    %0 = "stablehlo.scatter"(%x, %i, %u) <{scatter_dimension_numbers = #stablehlo.scatter<
      inserted_window_dims = [0], scatter_dims_to_operand_dims = [0], index_vector_dim = 1>}> ({
      ^bb0(%old: tensor<f32>, %new: tensor<f32>):
        %1 = stablehlo.add %old, %new : tensor<f32>
        stablehlo.return %1 : tensor<f32>
    }) : (tensor<8xf32>, tensor<4000x1xi32>, tensor<4000xf32>) -> tensor<8xf32>
    return %0 : tensor<8xf32>
  }
}
