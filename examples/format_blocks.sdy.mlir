// Made by tools/docs/make_examples.py from examples/programs/format_document.py.
// eight devices, a 3x2x1 block for each
module @format_blocks attributes {mhlo.num_partitions = 8 : i32, mhlo.num_replicas = 1 : i32} {
  sdy.mesh @mesh = <["rows"=2, "columns"=4]>
  func.func public @main(%0: tensor<3x4x4xi32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {"rows"}, {"columns"}]>},
                         %1: tensor<3x4x4xi32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {"rows"}, {"columns"}]>})
      -> (tensor<3x4x4xi32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {"rows"}, {"columns"}]>}) {
    %2 = stablehlo.add %0, %1 {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{}, {"rows"}, {"columns"}]>]>} : tensor<3x4x4xi32>
    return %2 : tensor<3x4x4xi32>
  }
}
