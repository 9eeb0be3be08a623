// Made by tools/docs/make_examples.py from examples/programs/format_document.py.
// two column tiles (of 2 columns and of 1), each on four devices
module @format_partially_replicated attributes {mhlo.num_partitions = 8 : i32, mhlo.num_replicas = 1 : i32} {
  func.func public @main(%0: tensor<4x3xi32> {mhlo.sharding = "{devices=[1,2,4]0,1,2,3,4,5,6,7} last_tile_dim_replicate"},
                         %1: tensor<4x3xi32> {mhlo.sharding = "{devices=[1,2,4]0,1,2,3,4,5,6,7} last_tile_dim_replicate"})
      -> (tensor<4x3xi32> {mhlo.sharding = "{devices=[1,2,4]0,1,2,3,4,5,6,7} last_tile_dim_replicate"}) {
    %2 = stablehlo.add %0, %1 {mhlo.sharding = "{devices=[1,2,4]0,1,2,3,4,5,6,7} last_tile_dim_replicate"} : tensor<4x3xi32>
    return %2 : tensor<4x3xi32>
  }
}
