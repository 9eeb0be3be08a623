// spatial case 2, transposed: zeros between the rows of the input make 32 rows 64. A window of two dilated rows holds
// one row of the input, and that row lies on the tile of the result: nothing moves.
// RUN: shardpass-opt %s partition | FileCheck %s
// RUN: shardpass-run %s partition --devices 4 --check

// CHECK-LABEL: func.func @main(
// CHECK-NOT: channel_handle
// CHECK: stablehlo.convolution(%arg0, %arg1)
// CHECK-SAME: lhs_dilate = [2, 2]
// CHECK-SAME: (tensor<1x8x8x8xf32>, tensor<2x2x8x4xf32>) -> tensor<1x16x16x4xf32>
// CHECK-NOT: channel_handle
module attributes {mhlo.num_partitions = 4 : i32} {
  func.func @main(%x: tensor<1x32x8x8xf32> {mhlo.sharding = "{devices=[1,4,1,1]<=[4]}"}, %k: tensor<2x2x8x4xf32>)
      -> (tensor<1x64x16x4xf32> {mhlo.sharding = "{devices=[1,4,1,1]<=[4]}"}) {
    %0 = stablehlo.convolution(%x, %k) dim_numbers = [b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f],
        window = {pad = [[1, 1], [1, 1]], lhs_dilate = [2, 2]} {batch_group_count = 1 : i64, feature_group_count = 1 : i64}
        : (tensor<1x32x8x8xf32>, tensor<2x2x8x4xf32>) -> tensor<1x64x16x4xf32>
    return %0 : tensor<1x64x16x4xf32>
  }
}
