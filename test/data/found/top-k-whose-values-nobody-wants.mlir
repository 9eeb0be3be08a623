// top_k along a split dimension, of which only the places are used: it was erased while they were, and MLIR crashed.
module attributes {mhlo.num_partitions = 4 : i32, mhlo.num_replicas = 1 : i32} {
  func.func @main(%x: tensor<9xf32> {mhlo.sharding = "{devices=[4]<=[4]}"}) -> (tensor<3xi32>) {
    %values, %places = chlo.top_k(%x, k = 3) : tensor<9xf32> -> (tensor<3xf32>, tensor<3xi32>)
    return %places : tensor<3xi32>
  }
}
