// CHLO's ops that stretch their operands are a broadcast_in_dim and the op itself; the stretched operand of lower rank
// is split with the other.
// RUN: shardpass-opt %s partition | FileCheck %s

// CHECK-LABEL: func.func @main(
// CHECK-NEXT: %[[WIDE:.*]] = stablehlo.broadcast_in_dim %arg1, dims = [1] : (tensor<4xf32>) -> tensor<2x4xf32>
// CHECK-NEXT: stablehlo.add %arg0, %[[WIDE]] : tensor<2x4xf32>
// CHECK-NEXT: return
module attributes {mhlo.num_partitions = 4 : i32} {
  func.func @main(%x: tensor<8x4xf32> {mhlo.sharding = "{devices=[4,1]<=[4]}"}, %y: tensor<4xf32>) -> tensor<8x4xf32> {
    %0 = chlo.broadcast_add %x, %y : (tensor<8x4xf32>, tensor<4xf32>) -> tensor<8x4xf32>
    return %0 : tensor<8x4xf32>
  }
}
