// case 3: rows of a split operand are written where they are. Positions outside the tile go far out of bounds, where
// scatter drops them. No collective.
// RUN: shardpass-opt %s partition | FileCheck %s
// RUN: shardpass-run %s partition --devices 4 --check

module attributes {mhlo.num_partitions = 4 : i32} {
  // 18 rows over 4 devices are ceil(18 / 4) = 5.
  // CHECK-LABEL: func.func public @main
  // CHECK-NOT: channel_handle
  // CHECK: dense<-1073741824>
  // CHECK-NOT: channel_handle
  // CHECK: stablehlo.select %{{.*}} : tensor<3x{{.*}}i1>, tensor<3x{{.*}}i32>
  // CHECK: "stablehlo.scatter"(%arg0, %{{.*}}, %arg2)
  // CHECK: -> tensor<5x2xf32>
  // CHECK-NOT: channel_handle
  func.func public @main(%x: tensor<18x2xf32> {mhlo.sharding = "{devices=[4,1]<=[4]}"}, %i: tensor<3x1xi32>,
      %u: tensor<3x2xf32>) -> (tensor<18x2xf32> {mhlo.sharding = "{devices=[4,1]<=[4]}"}) {
    %0 = "stablehlo.scatter"(%x, %i, %u) <{scatter_dimension_numbers = #stablehlo.scatter<update_window_dims = [1],
      inserted_window_dims = [0], scatter_dims_to_operand_dims = [0], index_vector_dim = 1>}> ({
      ^bb0(%old: tensor<f32>, %new: tensor<f32>):
        stablehlo.return %new : tensor<f32>
    }) : (tensor<18x2xf32>, tensor<3x1xi32>, tensor<3x2xf32>) -> tensor<18x2xf32>
    return %0 : tensor<18x2xf32>
  }
}
