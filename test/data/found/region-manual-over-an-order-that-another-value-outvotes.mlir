// A value in an order of devices of its own chose the mesh, and the region that is manual over half of it was refused (SP209)
module attributes {mhlo.num_partitions = 6 : i32, mhlo.num_replicas = 1 : i32} {
  func.func @main(%x: tensor<4x6xf32> {mhlo.sharding = "{devices=[2,3]0,4,5,1,2,3}"}, %y: tensor<4x6xf32> {mhlo.sharding = "{devices=[2,3]0,4,5,1,2,3}"}) -> tensor<4x6xf32> {
    %0 = stablehlo.add %x, %y : tensor<4x6xf32>
    %1 = stablehlo.custom_call @Sharding(%0) {mhlo.sharding = "{devices=[2,1,3]<=[6] last_tile_dim_replicate}"} : (tensor<4x6xf32>) -> tensor<4x6xf32>
    %2 = stablehlo.custom_call @SPMDFullToShardShape(%1) {mhlo.sharding = "{devices=[1,1,2,3]<=[6] last_tile_dims={manual, replicated}}"} : (tensor<4x6xf32>) -> tensor<2x6xf32>
    %3 = stablehlo.negate %2 : tensor<2x6xf32>
    %4 = stablehlo.custom_call @Sharding(%3) {mhlo.sharding = "{devices=[1,1,2,3]<=[6] last_tile_dims={manual, replicated}}"} : (tensor<2x6xf32>) -> tensor<2x6xf32>
    %5 = stablehlo.custom_call @SPMDShardToFullShape(%4) {mhlo.sharding = "{devices=[2,1,3]<=[6] last_tile_dim_replicate}"} : (tensor<2x6xf32>) -> tensor<4x6xf32>
    return %5 : tensor<4x6xf32>
  }
}
