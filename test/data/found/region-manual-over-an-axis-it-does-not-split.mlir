// The array goes in with open dimensions; propagation split it over the region's other manual axis (SP023).
module attributes {mhlo.num_partitions = 8 : i32, mhlo.num_replicas = 1 : i32} {
  func.func @main(%x: tensor<12x9xf32> {mhlo.sharding = "{devices=[4,2]<=[2,2,2]T(1,0,2)}"}) -> tensor<8x9xf32> {
    %0 = stablehlo.custom_call @Sharding(%x) {backend_config = "unspecified_dims=[0,1]", mhlo.sharding = "{devices=[2,1,4]<=[2,2,2]T(1,0,2) last_tile_dim_replicate}"} : (tensor<12x9xf32>) -> tensor<12x9xf32>
    %1 = stablehlo.custom_call @SPMDFullToShardShape(%0) {backend_config = "unspecified_dims=[0,1]", mhlo.sharding = "{devices=[1,1,4,2]<=[8] last_tile_dims={manual, replicated}}"} : (tensor<12x9xf32>) -> tensor<6x9xf32>
    %2 = "stablehlo.collective_permute"(%1) <{channel_handle = #stablehlo.channel_handle<handle = 1, type = 1>, source_target_pairs = dense<[[0, 2], [1, 3], [2, 0], [3, 1], [4, 6], [5, 7], [6, 4], [7, 5]]> : tensor<8x2xi64>}> : (tensor<6x9xf32>) -> tensor<6x9xf32>
    %3 = stablehlo.custom_call @Sharding(%2) {mhlo.sharding = "{devices=[1,1,4,2]<=[8] last_tile_dims={manual, replicated}}"} : (tensor<6x9xf32>) -> tensor<6x9xf32>
    %4 = stablehlo.custom_call @SPMDShardToFullShape(%3) {mhlo.sharding = "{devices=[2,1,4]<=[2,2,2]T(1,0,2) last_tile_dim_replicate}"} : (tensor<6x9xf32>) -> tensor<12x9xf32>
    %5 = stablehlo.slice %4 [0:8, 0:9] : (tensor<12x9xf32>) -> tensor<8x9xf32>
    return %5 : tensor<8x9xf32>
  }
}
