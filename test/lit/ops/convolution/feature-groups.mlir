// Groups of features (here depthwise, a group for each of 8 features) split with input, kernel and result: each device
// works on its 2 groups, and nothing moves.
// RUN: shardpass-opt %s partition | FileCheck %s
// RUN: shardpass-run %s partition --devices 4 --check

// CHECK-LABEL: func.func @main(
// CHECK-NEXT: stablehlo.convolution(%arg0, %arg1)
// CHECK-SAME: feature_group_count = 2
// CHECK-SAME: (tensor<2x6x6x2xf32>, tensor<3x3x1x2xf32>) -> tensor<2x6x6x2xf32>
// CHECK-NEXT: return
module attributes {mhlo.num_partitions = 4 : i32} {
  func.func @main(%x: tensor<2x6x6x8xf32> {mhlo.sharding = "{devices=[1,1,1,4]<=[4]}"}, %k: tensor<3x3x1x8xf32>)
      -> tensor<2x6x6x8xf32> {
    %0 = stablehlo.convolution(%x, %k) dim_numbers = [b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f],
        window = {pad = [[1, 1], [1, 1]]} {batch_group_count = 1 : i64, feature_group_count = 8 : i64}
        : (tensor<2x6x6x8xf32>, tensor<3x3x1x8xf32>) -> tensor<2x6x6x8xf32>
    return %0 : tensor<2x6x6x8xf32>
  }
}
