// A transformed dimension is needed whole. Its split moves to the rows by an all_to_all and back by another; nothing is
// gathered.
// RUN: shardpass-opt %s partition | FileCheck %s
// RUN: shardpass-run %s partition --devices 4 --check

// CHECK-LABEL: func.func @main(%arg0: tensor<64x4xcomplex<f32>>
// CHECK: "stablehlo.all_to_all"
// CHECK: shardpass.cause = "operand 0 of stablehlo.fft"
// CHECK-NOT: channel_handle
// CHECK: stablehlo.fft %{{.*}}, type = FFT, length = [16] : (tensor<16x16xcomplex<f32>>) -> tensor<16x16xcomplex<f32>>
// CHECK: "stablehlo.all_to_all"
// CHECK: shardpass.cause = "result of stablehlo.fft"
// CHECK-NOT: channel_handle
// CHECK: return %{{.*}} : tensor<64x4xcomplex<f32>>
module attributes {mhlo.num_partitions = 4 : i32} {
  func.func @main(%x: tensor<64x16xcomplex<f32>> {mhlo.sharding = "{devices=[1,4]<=[4]}"})
      -> (tensor<64x16xcomplex<f32>> {mhlo.sharding = "{devices=[1,4]<=[4]}"}) {
    %0 = stablehlo.fft %x, type = FFT, length = [16] : (tensor<64x16xcomplex<f32>>) -> tensor<64x16xcomplex<f32>>
    return %0 : tensor<64x16xcomplex<f32>>
  }
}
