// spatial case 1: a window of one element without stride, padding or dilation leaves a dimension alone. Split, even
// unevenly, nothing moves and nothing is masked.
// RUN: shardpass-opt %s partition | FileCheck %s
// RUN: shardpass-run %s partition --devices 4 --check

// 10 rows over 4 devices are ceil(10 / 4) = 3.
// CHECK-LABEL: func.func @main(
// CHECK-NEXT: stablehlo.convolution(%arg0, %arg1)
// CHECK-SAME: (tensor<1x3x6x8xf32>, tensor<1x1x8x4xf32>) -> tensor<1x3x6x4xf32>
// CHECK-NEXT: return
module attributes {mhlo.num_partitions = 4 : i32} {
  func.func @main(%x: tensor<1x10x6x8xf32> {mhlo.sharding = "{devices=[1,4,1,1]<=[4]}"}, %k: tensor<1x1x8x4xf32>)
      -> (tensor<1x10x6x4xf32> {mhlo.sharding = "{devices=[1,4,1,1]<=[4]}"}) {
    %0 = stablehlo.convolution(%x, %k) dim_numbers = [b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f],
        window = {} {batch_group_count = 1 : i64, feature_group_count = 1 : i64}
        : (tensor<1x10x6x8xf32>, tensor<1x1x8x4xf32>) -> tensor<1x10x6x4xf32>
    return %0 : tensor<1x10x6x4xf32>
  }
}
