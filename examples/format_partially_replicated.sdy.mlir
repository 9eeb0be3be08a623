// Made by tools/docs/make_examples.py from examples/programs/format_document.py.
// two column tiles (of 2 columns and of 1), each on four devices
module @format_partially_replicated attributes {mhlo.num_partitions = 8 : i32, mhlo.num_replicas = 1 : i32} {
  sdy.mesh @mesh = <["columns"=2, "copies"=4]>
  func.func public @main(%0: tensor<4x3xi32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {"columns"}]>},
                         %1: tensor<4x3xi32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {"columns"}]>})
      -> (tensor<4x3xi32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {"columns"}]>}) {
    %2 = stablehlo.add %0, %1 {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{}, {"columns"}]>]>} : tensor<4x3xi32>
    return %2 : tensor<4x3xi32>
  }
}
