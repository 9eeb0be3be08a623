// Splits go with their dimensions: each device transposes its tile, and nothing moves.
// RUN: shardpass-opt %s partition | FileCheck %s
// RUN: shardpass-run %s partition --devices 4 --check

// CHECK-LABEL: func.func @main(
// CHECK-NEXT: stablehlo.transpose %arg0, dims = [1, 0] : (tensor<4x5xf32>) -> tensor<5x4xf32>
// CHECK-NEXT: return
module attributes {mhlo.num_partitions = 4 : i32} {
  func.func @main(%x: tensor<8x10xf32> {mhlo.sharding = "{devices=[2,2]<=[4]}"}) -> tensor<10x8xf32> {
    %0 = stablehlo.transpose %x, dims = [1, 0] : (tensor<8x10xf32>) -> tensor<10x8xf32>
    return %0 : tensor<10x8xf32>
  }
}
