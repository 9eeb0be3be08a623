// The gather wants columns first, and XLA let that layout reach the transform, which has none but row-major: SP512.
module attributes {mhlo.num_partitions = 8 : i32, mhlo.num_replicas = 1 : i32} {
  func.func @main(%a1: tensor<7x5xf32>) -> tensor<7x5x2x2xcomplex<f32>> {
    %v8 = stablehlo.negate %a1 {mhlo.sharding = "{devices=[1,8]<=[8]}"} : tensor<7x5xf32>
    %v9 = stablehlo.broadcast_in_dim %v8, dims = [0, 1] : (tensor<7x5xf32>) -> tensor<7x5x2x2xf32>
    %v27 = "stablehlo.fft"(%v9) {fft_type = #stablehlo<fft_type RFFT>, fft_length = array<i64: 2, 2>} : (tensor<7x5x2x2xf32>) -> (tensor<7x5x2x2xcomplex<f32>>)
    return %v27 : tensor<7x5x2x2xcomplex<f32>>
  }
}
