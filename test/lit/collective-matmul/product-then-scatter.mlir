// The sums of a reduce_scatter go round the ring, and each device adds its own term: no product is made whole. Among 8
// devices two sums for each block come from both sides.
// RUN: shardpass-opt %s 'shardpass-collective-matmul{matmul-loops=all matmul-unroll=8},canonicalize,cse' 2>/dev/null | FileCheck %s
// RUN: shardpass-opt %s 'shardpass-collective-matmul{matmul-loops=all matmul-one-way},canonicalize,cse' 2>/dev/null | FileCheck %s --check-prefix=ONE

// CHECK-LABEL: func.func @main(
// CHECK-NOT: -> tensor<16x5xf32>
// CHECK-COUNT-7: "stablehlo.collective_permute"{{.*}} -> tensor<2x5xf32>
// CHECK-NOT: reduce_scatter

// ONE-LABEL: func.func @main(
// ONE: stablehlo.while
// ONE: "stablehlo.collective_permute"
// ONE-SAME: dense<{{\[\[}}7, 0], [0, 1], [1, 2]
// ONE: stablehlo.dot_general
// ONE-NEXT: stablehlo.add
module attributes {mhlo.num_partitions = 8 : i32} {
  func.func @main(%x: tensor<16x3xf32>, %w: tensor<3x5xf32>) -> tensor<2x5xf32> {
    %0 = stablehlo.dot_general %x, %w, contracting_dims = [1] x [0] : (tensor<16x3xf32>, tensor<3x5xf32>) -> tensor<16x5xf32>
    %1 = "stablehlo.reduce_scatter"(%0) <{channel_handle = #stablehlo.channel_handle<handle = 1, type = 1>, replica_groups = dense<[[0, 1, 2, 3, 4, 5, 6, 7]]> : tensor<1x8xi64>, scatter_dimension = 0 : i64, use_global_device_ids}> ({
    ^bb0(%a: tensor<f32>, %b: tensor<f32>):
      %2 = stablehlo.add %a, %b : tensor<f32>
      stablehlo.return %2 : tensor<f32>
    }) : (tensor<16x5xf32>) -> tensor<2x5xf32>
    return %1 : tensor<2x5xf32>
  }
}
