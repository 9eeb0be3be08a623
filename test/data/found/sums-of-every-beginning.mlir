// jax.lax.associative_scan: a slice without elements got a window of a negative width
module attributes {mhlo.num_partitions = 8 : i32} {
  func.func @main(%x: tensor<4xf32> {mhlo.sharding = "{devices=[2,4]<=[8] last_tile_dim_replicate}"}) -> tensor<4xf32> {
    %0 = stablehlo.slice %x [0:3:2] : (tensor<4xf32>) -> tensor<2xf32>
    %1 = stablehlo.slice %x [1:4:2] : (tensor<4xf32>) -> tensor<2xf32>
    %2 = stablehlo.add %0, %1 : tensor<2xf32>
    %3 = stablehlo.slice %2 [0:1:2] : (tensor<2xf32>) -> tensor<1xf32>
    %4 = stablehlo.slice %2 [1:2:2] : (tensor<2xf32>) -> tensor<1xf32>
    %5 = stablehlo.add %3, %4 : tensor<1xf32>
    %6 = stablehlo.slice %5 [0:0] : (tensor<1xf32>) -> tensor<0xf32>
    %7 = stablehlo.slice %2 [2:2:2] : (tensor<2xf32>) -> tensor<0xf32>
    %8 = stablehlo.add %6, %7 : tensor<0xf32>
    %9 = stablehlo.slice %2 [0:1] : (tensor<2xf32>) -> tensor<1xf32>
    %10 = stablehlo.concatenate %9, %8, dim = 0 : (tensor<1xf32>, tensor<0xf32>) -> tensor<1xf32>
    %c = stablehlo.constant dense<0.0> : tensor<f32>
    %11 = stablehlo.pad %10, %c, low = [0], high = [1], interior = [1] : (tensor<1xf32>, tensor<f32>) -> tensor<2xf32>
    %12 = stablehlo.pad %5, %c, low = [1], high = [0], interior = [1] : (tensor<1xf32>, tensor<f32>) -> tensor<2xf32>
    %13 = stablehlo.add %11, %12 : tensor<2xf32>
    %14 = stablehlo.slice %13 [0:1] : (tensor<2xf32>) -> tensor<1xf32>
    %15 = stablehlo.slice %x [2:4:2] : (tensor<4xf32>) -> tensor<1xf32>
    %16 = stablehlo.add %14, %15 : tensor<1xf32>
    %17 = stablehlo.slice %x [0:1] : (tensor<4xf32>) -> tensor<1xf32>
    %18 = stablehlo.concatenate %17, %16, dim = 0 : (tensor<1xf32>, tensor<1xf32>) -> tensor<2xf32>
    %19 = stablehlo.pad %18, %c, low = [0], high = [1], interior = [1] : (tensor<2xf32>, tensor<f32>) -> tensor<4xf32>
    %20 = stablehlo.pad %13, %c, low = [1], high = [0], interior = [1] : (tensor<2xf32>, tensor<f32>) -> tensor<4xf32>
    %21 = stablehlo.add %19, %20 : tensor<4xf32>
    return %21 : tensor<4xf32>
  }
}
