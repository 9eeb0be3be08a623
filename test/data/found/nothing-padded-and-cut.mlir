// A window of an array without elements had no tiles to lie beside: a division by zero.
module attributes {mhlo.num_partitions = 4 : i32, mhlo.num_replicas = 1 : i32} {
  func.func @main(%a1: tensor<7x8x0xf32>, %i: tensor<i32>) -> (tensor<7x8x3xf32> {mhlo.sharding = "{devices=[1,1,4]<=[4]}"}) {
    %v6 = stablehlo.constant dense<1.0> : tensor<f32>
    %v7 = "stablehlo.pad"(%a1, %v6) {edge_padding_low = array<i64: 0, 0, 2>, edge_padding_high = array<i64: 0, 0, 1>, interior_padding = array<i64: 0, 0, 0>} : (tensor<7x8x0xf32>, tensor<f32>) -> (tensor<7x8x3xf32>)
    %v10 = "stablehlo.dynamic_slice"(%v7, %i, %i, %i) {slice_sizes = array<i64: 7, 8, 3>} : (tensor<7x8x3xf32>, tensor<i32>, tensor<i32>, tensor<i32>) -> (tensor<7x8x3xf32>)
    return %v10 : tensor<7x8x3xf32>
  }
}
