// Made by tools/docs/make_examples.py from examples/programs/format_document.py.
// every device holds the whole
module @format_replicated attributes {mhlo.num_partitions = 8 : i32, mhlo.num_replicas = 1 : i32} {
  sdy.mesh @mesh = <["copies"=8]>
  func.func public @main(%0: tensor<4x3xi32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {}]>},
                         %1: tensor<4x3xi32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {}]>})
      -> (tensor<4x3xi32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {}]>}) {
    %2 = stablehlo.add %0, %1 {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{}, {}]>]>} : tensor<4x3xi32>
    return %2 : tensor<4x3xi32>
  }
}
