// XLA takes a single update for a dynamic_slice and a dynamic_update_slice, and would fold that slice with the one that
// cuts a device's tile, forgetting what is clamped between them. A barrier keeps them apart.
// RUN: shardpass-opt %s partition | FileCheck %s
// RUN: shardpass-run %s partition --devices 4 --check

// CHECK-LABEL: func.func @main(
// CHECK-NOT: channel_handle
// CHECK: %[[TILE:.*]] = stablehlo.optimization_barrier %arg0 : tensor<4x8xf32>
// CHECK: "stablehlo.scatter"(%[[TILE]]
// CHECK: -> tensor<4x8xf32>
// CHECK-NOT: channel_handle
module attributes {mhlo.num_partitions = 4 : i32} {
  func.func @main(%x: tensor<16x8xf32> {mhlo.sharding = "{devices=[4,1]<=[4]}"}, %i: tensor<1x1xi32>, %u: tensor<1x8xf32>)
      -> (tensor<16x8xf32> {mhlo.sharding = "{devices=[4,1]<=[4]}"}) {
    %0 = "stablehlo.scatter"(%x, %i, %u) <{scatter_dimension_numbers = #stablehlo.scatter<update_window_dims = [1],
      inserted_window_dims = [0], scatter_dims_to_operand_dims = [0], index_vector_dim = 1>}> ({
      ^bb0(%old: tensor<f32>, %new: tensor<f32>):
        stablehlo.return %new : tensor<f32>
    }) : (tensor<16x8xf32>, tensor<1x1xi32>, tensor<1x8xf32>) -> tensor<16x8xf32>
    return %0 : tensor<16x8xf32>
  }
}
