// Made by tools/docs/make_examples.py from examples/programs/format_document.py.
// every device holds the whole
module @format_replicated attributes {mhlo.num_partitions = 8 : i32, mhlo.num_replicas = 1 : i32} {
  func.func public @main(%0: tensor<4x3xi32> {mhlo.sharding = "{replicated}"},
                         %1: tensor<4x3xi32> {mhlo.sharding = "{replicated}"})
      -> (tensor<4x3xi32> {mhlo.sharding = "{replicated}"}) {
    %2 = stablehlo.add %0, %1 {mhlo.sharding = "{replicated}"} : tensor<4x3xi32>
    return %2 : tensor<4x3xi32>
  }
}
