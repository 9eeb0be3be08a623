// spatial case 2, two rows apart: 64 rows become 32, with one row of padding behind. Windows begin at even rows, as
// tiles of 16 rows do, so only the last window of a tile reaches beyond it, by one row: one permute from the right,
// none from the left.
// RUN: shardpass-opt %s partition | FileCheck %s
// RUN: shardpass-run %s partition --devices 4 --check

// CHECK-LABEL: func.func @main(%arg0: tensor<1x16x8x8xf32>
// CHECK: "stablehlo.collective_permute"
// CHECK-SAME{LITERAL}: source_target_pairs = dense<[[1, 0], [2, 1], [3, 2]]>
// CHECK-SAME: (tensor<1x1x8x8xf32>) -> tensor<1x1x8x8xf32>
// CHECK-NOT: channel_handle
// CHECK: stablehlo.convolution(
// CHECK-SAME: stride = [2, 2]
// CHECK-SAME: (tensor<1x17x8x8xf32>, tensor<3x3x8x4xf32>) -> tensor<1x8x4x4xf32>
// CHECK-NOT: channel_handle
module attributes {mhlo.num_partitions = 4 : i32} {
  func.func @main(%x: tensor<1x64x8x8xf32> {mhlo.sharding = "{devices=[1,4,1,1]<=[4]}"}, %k: tensor<3x3x8x4xf32>)
      -> (tensor<1x32x4x4xf32> {mhlo.sharding = "{devices=[1,4,1,1]<=[4]}"}) {
    %0 = stablehlo.convolution(%x, %k) dim_numbers = [b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f],
        window = {stride = [2, 2], pad = [[0, 1], [0, 1]]} {batch_group_count = 1 : i64, feature_group_count = 1 : i64}
        : (tensor<1x64x8x8xf32>, tensor<3x3x8x4xf32>) -> tensor<1x32x4x4xf32>
    return %0 : tensor<1x32x4x4xf32>
  }
}
