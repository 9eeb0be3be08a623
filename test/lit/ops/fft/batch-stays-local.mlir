// Dimensions before the transformed ones are a batch: each device transforms its own rows.
// RUN: shardpass-opt %s partition | FileCheck %s
// RUN: shardpass-run %s partition --devices 4 --check

// CHECK-LABEL: func.func @main(
// CHECK-NEXT: stablehlo.fft %arg0, type = RFFT, length = [16] : (tensor<2x3x16xf32>) -> tensor<2x3x9xcomplex<f32>>
// CHECK-NEXT: return
module attributes {mhlo.num_partitions = 4 : i32} {
  func.func @main(%x: tensor<8x3x16xf32> {mhlo.sharding = "{devices=[4,1,1]<=[4]}"}) -> tensor<8x3x9xcomplex<f32>> {
    %0 = stablehlo.fft %x, type = RFFT, length = [16] : (tensor<8x3x16xf32>) -> tensor<8x3x9xcomplex<f32>>
    return %0 : tensor<8x3x9xcomplex<f32>>
  }
}
