// A loop that ends by the sum of an iota that is split: nothing in its condition comes from an argument.
module attributes {mhlo.num_partitions = 2 : i32, mhlo.num_replicas = 1 : i32} {
  func.func @main(%x: tensor<6xi32> {mhlo.sharding = "{devices=[2]<=[2]}"}) -> (tensor<6xi32>) {
    %zero = stablehlo.constant dense<0> : tensor<i32>
    %0:2 = stablehlo.while(%i = %zero, %y = %x) : tensor<i32>, tensor<6xi32>
    cond {
      %none = stablehlo.constant dense<0> : tensor<i32>
      %numbers = stablehlo.iota dim = 0 {mhlo.sharding = "{devices=[2]<=[2]}"} : tensor<4xi32>
      %sum = stablehlo.reduce(%numbers init: %none) applies stablehlo.add across dimensions = [0] : (tensor<4xi32>, tensor<i32>) -> tensor<i32>
      %more = stablehlo.compare LT, %i, %sum : (tensor<i32>, tensor<i32>) -> tensor<i1>
      stablehlo.return %more : tensor<i1>
    } do {
      %one = stablehlo.constant dense<1> : tensor<i32>
      %next = stablehlo.add %i, %one : tensor<i32>
      %more = stablehlo.add %y, %y : tensor<6xi32>
      stablehlo.return %next, %more : tensor<i32>, tensor<6xi32>
    }
    return %0#1 : tensor<6xi32>
  }
}
