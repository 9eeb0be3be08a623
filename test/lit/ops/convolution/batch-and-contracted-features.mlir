// Batch over the major axis of a 2x2 mesh, input features over the minor one: as in a contraction, features leave
// partial sums over their axis alone, and the batch stays split.
// RUN: shardpass-opt %s "partition{effort=0}" | FileCheck %s
// RUN: shardpass-run %s "partition{effort=0}" --devices 4 --check

// CHECK-LABEL: func.func @main(
// CHECK: %[[PART:.*]] = stablehlo.convolution(
// CHECK-SAME: (tensor<4x6x6x32xf32>, tensor<3x3x32x4xf32>) -> tensor<4x6x6x4xf32>
// CHECK: "stablehlo.all_reduce"(%[[PART]])
// CHECK-SAME{LITERAL}: replica_groups = dense<[[0, 1], [2, 3]]>
// CHECK: shardpass.cause = "partial results of stablehlo.convolution"
// CHECK-NOT: channel_handle
module attributes {mhlo.num_partitions = 4 : i32} {
  func.func @main(%x: tensor<8x6x6x64xf32> {mhlo.sharding = "{devices=[2,1,1,2]<=[4]}"}, %k: tensor<3x3x64x4xf32>)
      -> (tensor<8x6x6x4xf32> {mhlo.sharding = "{devices=[2,1,1,1,2]<=[4] last_tile_dim_replicate}"}) {
    %0 = stablehlo.convolution(%x, %k) dim_numbers = [b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f],
        window = {pad = [[1, 1], [1, 1]]} {batch_group_count = 1 : i64, feature_group_count = 1 : i64}
        : (tensor<8x6x6x64xf32>, tensor<3x3x64x4xf32>) -> tensor<8x6x6x4xf32>
    return %0 : tensor<8x6x6x4xf32>
  }
}
