// Made by tools/docs/make_examples.py from examples/programs/format_document.py.
// two devices, each with two rows
module @format_rows attributes {mhlo.num_partitions = 2 : i32, mhlo.num_replicas = 1 : i32} {
  func.func public @main(%0: tensor<4x3xi32> {mhlo.sharding = "{devices=[2,1]0,1}"},
                         %1: tensor<4x3xi32> {mhlo.sharding = "{devices=[2,1]0,1}"})
      -> (tensor<4x3xi32> {mhlo.sharding = "{devices=[2,1]0,1}"}) {
    %2 = stablehlo.add %0, %1 {mhlo.sharding = "{devices=[2,1]0,1}"} : tensor<4x3xi32>
    return %2 : tensor<4x3xi32>
  }
}
