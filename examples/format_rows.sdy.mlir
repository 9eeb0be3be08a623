// Made by tools/docs/make_examples.py from examples/programs/format_document.py.
// two devices, each with two rows
module @format_rows attributes {mhlo.num_partitions = 2 : i32, mhlo.num_replicas = 1 : i32} {
  sdy.mesh @mesh = <["rows"=2]>
  func.func public @main(%0: tensor<4x3xi32> {sdy.sharding = #sdy.sharding<@mesh, [{"rows"}, {}]>},
                         %1: tensor<4x3xi32> {sdy.sharding = #sdy.sharding<@mesh, [{"rows"}, {}]>})
      -> (tensor<4x3xi32> {sdy.sharding = #sdy.sharding<@mesh, [{"rows"}, {}]>}) {
    %2 = stablehlo.add %0, %1 {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"rows"}, {}]>]>} : tensor<4x3xi32>
    return %2 : tensor<4x3xi32>
  }
}
