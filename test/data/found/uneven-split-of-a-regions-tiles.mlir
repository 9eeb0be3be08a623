// A region whose tiles of 33 are split unevenly over a free axis: the whole of 66 is not split so, and numbers moved.
module attributes {mhlo.num_partitions = 8 : i32, mhlo.num_replicas = 1 : i32} {
  func.func @main(%a0: tensor<66xf32>) -> (tensor<66xf32>) {
    %v0_s = "stablehlo.custom_call"(%a0) {call_target_name = "Sharding", backend_config = "unspecified_dims=[0]", mhlo.sharding = "{devices=[2,4]<=[4,2]T(1,0) last_tile_dim_replicate}"} : (tensor<66xf32>) -> tensor<66xf32>
    %v0_i = "stablehlo.custom_call"(%v0_s) {call_target_name = "SPMDFullToShardShape", backend_config = "unspecified_dims=[0]", mhlo.sharding = "{devices=[1,4,2]<=[2,2,2]T(0,2,1) last_tile_dims={manual, replicated}}"} : (tensor<66xf32>) -> tensor<33xf32>
    %v0_t = "stablehlo.custom_call"(%v0_i) {call_target_name = "Sharding", backend_config = "", mhlo.sharding = "{devices=[2,4]<=[2,2,2]T(1,0,2) last_tile_dims={manual}}"} : (tensor<33xf32>) -> tensor<33xf32>
    %v0_d = "stablehlo.partition_id"() : () -> tensor<ui32>
    %v0_c = stablehlo.constant dense<1> : tensor<ui32>
    %v0_k = stablehlo.constant dense<2> : tensor<ui32>
    %v0_q = stablehlo.divide %v0_d, %v0_c : tensor<ui32>
    %v0_m = stablehlo.remainder %v0_q, %v0_k : tensor<ui32>
    %v0_e = stablehlo.convert %v0_m : (tensor<ui32>) -> tensor<f32>
    %v0_b = stablehlo.broadcast_in_dim %v0_e, dims = [] : (tensor<f32>) -> tensor<33xf32>
    %v0_u = stablehlo.add %v0_t, %v0_b : tensor<33xf32>
    %v0_o = "stablehlo.custom_call"(%v0_u) {call_target_name = "Sharding", backend_config = "", mhlo.sharding = "{devices=[1,4,2]<=[2,2,2]T(0,2,1) last_tile_dims={manual, replicated}}"} : (tensor<33xf32>) -> tensor<33xf32>
    %v0 = "stablehlo.custom_call"(%v0_o) {call_target_name = "SPMDShardToFullShape", backend_config = "", mhlo.sharding = "{devices=[2,4]<=[4,2]T(1,0) last_tile_dim_replicate}"} : (tensor<33xf32>) -> tensor<66xf32>
    return %v0 : tensor<66xf32>
  }
}
