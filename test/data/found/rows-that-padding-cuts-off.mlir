// Negative padding beside positive: XLA on CPU reads past the input.
module attributes {mhlo.num_partitions = 8 : i32, mhlo.num_replicas = 1 : i32} {
  func.func @main(%a0: tensor<2x1x4x4xf32>, %a1: tensor<4x2x4x4xf32>, %a2: tensor<5x3xf32>) -> (tensor<4x2x1x6x5x3xf32>) {
    %v0 = "stablehlo.convolution"(%a1, %a0) {dimension_numbers = #stablehlo.conv<[b, f, 0, 1]x[o, i, 0, 1]->[b, f, 0, 1]>, batch_group_count = 1 : i64, feature_group_count = 2 : i64, window_strides = array<i64: 2, 1>, padding = dense<[[-1, 2], [2, 0]]> : tensor<2x2xi64>, lhs_dilation = array<i64: 1, 2>, rhs_dilation = array<i64: 1, 1>, mhlo.sharding = "{devices=[2,1,1,2,2]<=[2,2,2]T(2,1,0) last_tile_dim_replicate}"} : (tensor<4x2x4x4xf32>, tensor<2x1x4x4xf32>) -> (tensor<4x2x1x6xf32>)
    %v1 = "stablehlo.dot_general"(%v0, %a2) {dot_dimension_numbers = #stablehlo.dot<>} : (tensor<4x2x1x6xf32>, tensor<5x3xf32>) -> (tensor<4x2x1x6x5x3xf32>)
    return %v1 : tensor<4x2x1x6x5x3xf32>
  }
}

