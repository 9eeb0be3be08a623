// Made by tools/docs/make_examples.py from examples/programs/format_document.py.
// eight devices, a 3x2x1 block for each
module @format_blocks attributes {mhlo.num_partitions = 8 : i32, mhlo.num_replicas = 1 : i32} {
  func.func public @main(%0: tensor<3x4x4xi32> {mhlo.sharding = "{devices=[1,2,4]0,1,2,3,4,5,6,7}"},
                         %1: tensor<3x4x4xi32> {mhlo.sharding = "{devices=[1,2,4]0,1,2,3,4,5,6,7}"})
      -> (tensor<3x4x4xi32> {mhlo.sharding = "{devices=[1,2,4]0,1,2,3,4,5,6,7}"}) {
    %2 = stablehlo.add %0, %1 {mhlo.sharding = "{devices=[1,2,4]0,1,2,3,4,5,6,7}"} : tensor<3x4x4xi32>
    return %2 : tensor<3x4x4xi32>
  }
}
