// Every second row, from row 1: tiles of 4 rows begin at even rows, so each device takes rows 1 and 3 of its tile.
// RUN: shardpass-opt %s partition | FileCheck %s
// RUN: shardpass-run %s partition --devices 4 --check

// CHECK-LABEL: func.func @main(
// CHECK-NEXT: stablehlo.slice %arg0 [1:4:2, 0:3] : (tensor<4x3xf32>) -> tensor<2x3xf32>
// CHECK-NEXT: return
module attributes {mhlo.num_partitions = 4 : i32} {
  func.func @main(%x: tensor<16x3xf32> {mhlo.sharding = "{devices=[4,1]<=[4]}"})
      -> (tensor<8x3xf32> {mhlo.sharding = "{devices=[4,1]<=[4]}"}) {
    %0 = stablehlo.slice %x [1:16:2, 0:3] : (tensor<16x3xf32>) -> tensor<8x3xf32>
    return %0 : tensor<8x3xf32>
  }
}
