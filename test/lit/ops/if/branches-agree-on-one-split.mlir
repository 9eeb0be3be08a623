// The second branch ends with columns where the first has rows: its result moves inside of that branch, by an
// all_to_all, so that both branches return tiles of one split. The first branch moves nothing.
// RUN: shardpass-opt %s 'partition{effort=0}' | FileCheck %s
// RUN: shardpass-run %s partition --devices 4 --check

// CHECK-LABEL: func.func @main(%arg0: tensor<16x4xf32>
// CHECK-NOT: channel_handle
// CHECK: "stablehlo.if"(%arg1) ({
// CHECK: stablehlo.negate %arg0 : tensor<16x4xf32>
// CHECK-NOT: channel_handle
// CHECK: }, {
// CHECK: "stablehlo.all_to_all"
// CHECK: shardpass.cause = "value 0 that a region of stablehlo.if returns"
// CHECK-NOT: channel_handle
// CHECK: }) : (tensor<i1>) -> tensor<16x4xf32>
module attributes {mhlo.num_partitions = 4 : i32} {
  func.func @main(%x: tensor<64x4xf32> {mhlo.sharding = "{devices=[4,1]<=[4]}"}, %p: tensor<i1>) -> tensor<64x4xf32> {
    %0 = "stablehlo.if"(%p) ({
      %1 = stablehlo.negate %x : tensor<64x4xf32>
      stablehlo.return %1 : tensor<64x4xf32>
    }, {
      %1 = stablehlo.reshape %x : (tensor<64x4xf32>) -> tensor<4x64xf32>
      %2 = stablehlo.transpose %1, dims = [1, 0] : (tensor<4x64xf32>) -> tensor<64x4xf32>
      stablehlo.return %2 : tensor<64x4xf32>
    }) : (tensor<i1>) -> tensor<64x4xf32>
    return %0 : tensor<64x4xf32>
  }
}
