// Split indices: each device looks up its own positions in a table that it holds whole. Uneven indices need no mask.
// RUN: shardpass-opt %s partition | FileCheck %s
// RUN: shardpass-run %s partition --devices 4 --check

// 10 positions over 4 devices are ceil(10 / 4) = 3.
// CHECK-LABEL: func.func @main(
// CHECK-NOT: channel_handle
// CHECK: "stablehlo.gather"(%arg0, %arg1) {{.*}} : (tensor<6x3xf32>, tensor<3x1xi32>) -> tensor<3x3xf32>
// CHECK-NOT: stablehlo.select
// CHECK-NOT: channel_handle
module attributes {mhlo.num_partitions = 4 : i32} {
  func.func @main(%x: tensor<6x3xf32>, %i: tensor<10x1xi32> {mhlo.sharding = "{devices=[4,1]<=[4]}"})
      -> (tensor<10x3xf32> {mhlo.sharding = "{devices=[4,1]<=[4]}"}) {
    %0 = "stablehlo.gather"(%x, %i) <{dimension_numbers = #stablehlo.gather<offset_dims = [1],
      collapsed_slice_dims = [0], start_index_map = [0], index_vector_dim = 1>,
      slice_sizes = array<i64: 1, 3>}> : (tensor<6x3xf32>, tensor<10x1xi32>) -> tensor<10x3xf32>
    return %0 : tensor<10x3xf32>
  }
}
