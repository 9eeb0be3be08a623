// One row before and one behind, along a split dimension: 16 rows in tiles of 4 become 18 in tiles of ceil(18 / 4) = 5.
// The result's tiles begin at rows -1, 4, 9 and 14 of the operand: device 1 lacks row 8 of device 2, and device 2 rows
// 12 and 13 of device 3. What lies outside rows 0 to 15 becomes the padding value.
// RUN: shardpass-opt %s partition | FileCheck %s
// RUN: shardpass-run %s partition --devices 4 --check

// CHECK-LABEL: func.func @main(%arg0: tensor<4x3xf32>
// CHECK: "stablehlo.collective_permute"
// CHECK-SAME{LITERAL}: source_target_pairs = dense<[[2, 1], [3, 2]]>
// CHECK-SAME: (tensor<2x3xf32>) -> tensor<2x3xf32>
// CHECK-NOT: channel_handle
// CHECK: %[[VALUE:.*]] = stablehlo.broadcast_in_dim %arg1
// CHECK: stablehlo.select %{{.*}}, %{{.*}}, %[[VALUE]] : tensor<5x3xi1>, tensor<5x3xf32>
module attributes {mhlo.num_partitions = 4 : i32} {
  func.func @main(%x: tensor<16x3xf32> {mhlo.sharding = "{devices=[4,1]<=[4]}"}, %v: tensor<f32>)
      -> (tensor<18x3xf32> {mhlo.sharding = "{devices=[4,1]<=[4]}"}) {
    %0 = stablehlo.pad %x, %v, low = [1, 0], high = [1, 0], interior = [0, 0]
      : (tensor<16x3xf32>, tensor<f32>) -> tensor<18x3xf32>
    return %0 : tensor<18x3xf32>
  }
}
