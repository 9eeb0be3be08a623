// A slice that takes a dimension whole takes its tile whole; the limit is the tile's.
// RUN: shardpass-opt %s 'shardpass-import,shardpass-propagate,shardpass-partition' | FileCheck %s
// RUN: shardpass-run %s partition --devices 2 --check

// CHECK-LABEL: func.func @main(
// CHECK-NEXT: stablehlo.slice %{{.*}} [0:4, 1:3] : (tensor<4x8xf32>) -> tensor<4x2xf32>
// CHECK-NEXT: return
func.func @main(%x: tensor<8x8xf32> {mhlo.sharding = "{devices=[2,1]<=[2]}"}) -> tensor<8x2xf32> {
  %0 = stablehlo.slice %x [0:8, 1:3] : (tensor<8x8xf32>) -> tensor<8x2xf32>
  return %0 : tensor<8x2xf32>
}
