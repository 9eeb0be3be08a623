// spatial case 3: in the gradient with respect to a kernel the window (a gradient of 64 rows) is longer than the result
// (3 rows). Input and window are split over the rows, each device sums over its part of the window, with one row of the
// input from each neighbour, and an all_reduce of a kernel's size joins the parts. No batch of images is gathered.
// RUN: shardpass-opt %s partition | FileCheck %s
// RUN: shardpass-run %s partition --devices 4 --check

// 64 rows over 4 devices are 16, and 18 with the halo; the padding of rows has become part of the halo.
// CHECK-LABEL: func.func @main(
// CHECK-COUNT-2: "stablehlo.collective_permute"({{.*}}) <{{.*}} : (tensor<8x1x16x3xf32>) -> tensor<8x1x16x3xf32>
// CHECK: %[[PART:.*]] = stablehlo.convolution(
// CHECK-SAME{LITERAL}: pad = [[0, 0], [1, 1]]
// CHECK-SAME: (tensor<8x18x16x3xf32>, tensor<8x16x16x5xf32>) -> tensor<3x3x3x5xf32>
// CHECK: "stablehlo.all_reduce"(%[[PART]])
// CHECK: shardpass.cause = "partial results of stablehlo.convolution"
// CHECK-NOT: channel_handle
module attributes {mhlo.num_partitions = 4 : i32} {
  func.func @main(%x: tensor<8x64x16x3xf32> {mhlo.sharding = "{devices=[1,4,1,1]<=[4]}"},
      %g: tensor<8x64x16x5xf32> {mhlo.sharding = "{devices=[1,4,1,1]<=[4]}"}) -> tensor<3x3x3x5xf32> {
    %0 = stablehlo.convolution(%x, %g) dim_numbers = [f, 0, 1, b]x[i, 0, 1, o]->[0, 1, b, f],
        window = {pad = [[1, 1], [1, 1]]} {batch_group_count = 1 : i64, feature_group_count = 1 : i64}
        : (tensor<8x64x16x3xf32>, tensor<8x64x16x5xf32>) -> tensor<3x3x3x5xf32>
    return %0 : tensor<3x3x3x5xf32>
  }
}
