// A transpose moves the split with its dimension, both ways.
// RUN: shardpass-opt %s propagate | FileCheck %s

// Columns over the major axis and rows over the minor one, turned round.
// CHECK-LABEL: func.func @main(
// CHECK-SAME: tensor<4x8xf32> {mhlo.sharding = "{devices=[2,2]<=[4]}"},
// CHECK-SAME: tensor<4x8xf32> {mhlo.sharding = "{devices=[1,4]<=[4]}"})
// CHECK: stablehlo.transpose %{{.*}}, dims = [1, 0] {mhlo.sharding = "{devices=[2,2]<=[2,2]T(1,0)}"}
// CHECK: stablehlo.transpose %{{.*}}, dims = [1, 0] {mhlo.sharding = "{devices=[4,1]<=[4]}"}
func.func @main(%x: tensor<4x8xf32> {mhlo.sharding = "{devices=[2,2]<=[4]}"}, %y: tensor<4x8xf32>)
    -> (tensor<8x4xf32>, tensor<8x4xf32> {mhlo.sharding = "{devices=[4,1]<=[4]}"}) {
  %0 = stablehlo.transpose %x, dims = [1, 0] : (tensor<4x8xf32>) -> tensor<8x4xf32>
  %1 = stablehlo.transpose %y, dims = [1, 0] : (tensor<4x8xf32>) -> tensor<8x4xf32>
  return %0, %1 : tensor<8x4xf32>, tensor<8x4xf32>
}
