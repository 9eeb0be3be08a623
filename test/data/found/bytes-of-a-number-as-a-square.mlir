// A reshape was made again under a split that its operand cannot say: two bytes of four were asked to be a column.
module attributes {mhlo.num_partitions = 8 : i32, mhlo.num_replicas = 1 : i32} {
  func.func @main(%a2: tensor<i32>) -> (tensor<4xui8> {mhlo.sharding = "{devices=[4,2]<=[2,2,2]T(0,2,1) last_tile_dim_replicate}"}, tensor<2x2xui8> {mhlo.sharding = "{devices=[1,4,2]<=[2,2,2]T(2,1,0) last_tile_dim_replicate}"}) {
    %v1 = stablehlo.bitcast_convert %a2 : (tensor<i32>) -> (tensor<4xui8>)
    %v3 = stablehlo.reshape %v1 : (tensor<4xui8>) -> (tensor<2x2xui8>)
    return %v1, %v3 : tensor<4xui8>, tensor<2x2xui8>
  }
}
