// case 1: 8 rows become 4 x 2. A split of the rows over 4 devices is a split of the major part, on both sides: the same
// elements, and nothing moves.
// RUN: shardpass-opt %s partition | FileCheck %s
// RUN: shardpass-run %s partition --devices 4 --check

// CHECK-LABEL: func.func @main(
// CHECK-NEXT: stablehlo.reshape %arg0 : (tensor<2x6xf32>) -> tensor<1x2x6xf32>
// CHECK-NEXT: return
module attributes {mhlo.num_partitions = 4 : i32} {
  func.func @main(%x: tensor<8x6xf32> {mhlo.sharding = "{devices=[4,1]<=[4]}"}) -> tensor<4x2x6xf32> {
    %0 = stablehlo.reshape %x : (tensor<8x6xf32>) -> tensor<4x2x6xf32>
    return %0 : tensor<4x2x6xf32>
  }
}
