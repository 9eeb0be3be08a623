// Bits are taken for another type tile by tile. Where the new type is narrower there is one more dimension, of its
// parts, which stays whole.
// RUN: shardpass-opt %s partition | FileCheck %s
// RUN: shardpass-run %s partition --devices 4 --check

// 10 elements over 4 devices are ceil(10 / 4) = 3; 4 bytes make an f32.
// CHECK-LABEL: func.func @main(
// CHECK-NEXT: stablehlo.bitcast_convert %arg0 : (tensor<3xf32>) -> tensor<3x4xui8>
// CHECK-NEXT: stablehlo.bitcast_convert %arg0 : (tensor<3xf32>) -> tensor<3xi32>
// CHECK-NEXT: return
module attributes {mhlo.num_partitions = 4 : i32} {
  func.func @main(%x: tensor<10xf32> {mhlo.sharding = "{devices=[4]<=[4]}"})
      -> (tensor<10x4xui8> {mhlo.sharding = "{devices=[4,1]<=[4]}"}, tensor<10xi32> {mhlo.sharding = "{devices=[4]<=[4]}"}) {
    %0 = stablehlo.bitcast_convert %x : (tensor<10xf32>) -> tensor<10x4xui8>
    %1 = stablehlo.bitcast_convert %x : (tensor<10xf32>) -> tensor<10xi32>
    return %0, %1 : tensor<10x4xui8>, tensor<10xi32>
  }
}
