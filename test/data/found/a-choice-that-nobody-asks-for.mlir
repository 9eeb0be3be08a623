// Numbers of nothing that only a dead branch took: their collectives reached no argument or result, and XLA aborted.
module attributes {mhlo.num_partitions = 4 : i32, mhlo.num_replicas = 1 : i32} {
  func.func @main(%x: tensor<4xf32> {mhlo.sharding = "{devices=[4]<=[4]}"}, %c: tensor<i32>) -> (tensor<4xf32>) {
    %n = stablehlo.iota dim = 0 {mhlo.sharding = "{devices=[4]<=[4]}"} : tensor<12xf32>
    %r = stablehlo.custom_call @Sharding(%n) {mhlo.sharding = "{replicated}"} : (tensor<12xf32>) -> tensor<12xf32>
    %0 = "stablehlo.case"(%c) ({
      %a = stablehlo.negate %r : tensor<12xf32>
      stablehlo.return %a : tensor<12xf32>
    }, {
      %b = stablehlo.abs %r : tensor<12xf32>
      stablehlo.return %b : tensor<12xf32>
    }) : (tensor<i32>) -> tensor<12xf32>
    return %x : tensor<4xf32>
  }
}
