// spatial case 2: a 3-row window over tiles of 16 rows: one row from each side; at the borders nobody sends, and who
// receives nothing has the zeros that the window wants. The local window is unpadded.
// RUN: shardpass-opt %s partition | FileCheck %s
// RUN: shardpass-run %s partition --devices 4 --check

// CHECK-LABEL: func.func @main(
// CHECK-COUNT-2: "stablehlo.collective_permute"({{.*}}) <{{.*}} : (tensor<1x1x64x8xf32>) -> tensor<1x1x64x8xf32>
// CHECK-NOT: stablehlo.select
// CHECK: stablehlo.convolution(
// CHECK-SAME{LITERAL}: pad = [[0, 0], [1, 1]]
// CHECK-SAME: (tensor<1x18x64x8xf32>, tensor<3x3x8x4xf32>) -> tensor<1x16x64x4xf32>
// CHECK-NOT: all_gather
module attributes {mhlo.num_partitions = 4 : i32} {
  func.func @main(%x: tensor<1x64x64x8xf32> {mhlo.sharding = "{devices=[1,4,1,1]<=[4]}"}, %k: tensor<3x3x8x4xf32>)
      -> (tensor<1x64x64x4xf32> {mhlo.sharding = "{devices=[1,4,1,1]<=[4]}"}) {
    %0 = stablehlo.convolution(%x, %k) dim_numbers = [b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f],
        window = {pad = [[1, 1], [1, 1]]} {batch_group_count = 1 : i64, feature_group_count = 1 : i64}
        : (tensor<1x64x64x8xf32>, tensor<3x3x8x4xf32>) -> tensor<1x64x64x4xf32>
    return %0 : tensor<1x64x64x4xf32>
  }
}
