// Concatenation along a dimension that is not split joins tiles.
// RUN: shardpass-opt %s 'shardpass-import,shardpass-propagate,shardpass-partition' | FileCheck %s
// RUN: shardpass-run %s partition --devices 2 --check

// CHECK-LABEL: func.func @main(
// CHECK-NEXT: stablehlo.concatenate %{{.*}}, %{{.*}}, dim = 1 : (tensor<4x8xf32>, tensor<4x2xf32>) -> tensor<4x10xf32>
// CHECK-NEXT: return
func.func @main(%x: tensor<8x8xf32> {mhlo.sharding = "{devices=[2,1]<=[2]}"}, %y: tensor<8x2xf32> {mhlo.sharding = "{devices=[2,1]<=[2]}"}) -> tensor<8x10xf32> {
  %0 = stablehlo.concatenate %x, %y, dim = 1 : (tensor<8x8xf32>, tensor<8x2xf32>) -> tensor<8x10xf32>
  return %0 : tensor<8x10xf32>
}
