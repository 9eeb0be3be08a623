// rng in a loop whose carried values it never meets: XLA refused partition_id there, "the meaning is ambiguous".
module attributes {mhlo.num_partitions = 6 : i32, mhlo.num_replicas = 1 : i32} {
  func.func @main(%x: tensor<6xf32> {mhlo.sharding = "{devices=[6]<=[6]}"}) -> (tensor<6xf32>) {
    %zero = stablehlo.constant dense<0> : tensor<i32>
    %0:2 = stablehlo.while(%i = %zero, %y = %x) : tensor<i32>, tensor<6xf32>
    cond {
      %two = stablehlo.constant dense<2> : tensor<i32>
      %more = stablehlo.compare LT, %i, %two : (tensor<i32>, tensor<i32>) -> tensor<i1>
      stablehlo.return %more : tensor<i1>
    } do {
      %one = stablehlo.constant dense<1> : tensor<i32>
      %next = stablehlo.add %i, %one : tensor<i32>
      %low = stablehlo.constant dense<2.0> : tensor<f32>
      %high = stablehlo.constant dense<2.5> : tensor<f32>
      %shape = stablehlo.constant dense<[7, 8]> : tensor<2xi64>
      %drawn = stablehlo.rng %low, %high, %shape, distribution = UNIFORM : (tensor<f32>, tensor<f32>, tensor<2xi64>) -> tensor<7x8xf32>
      stablehlo.return %next, %y : tensor<i32>, tensor<6xf32>
    }
    return %0#1 : tensor<6xf32>
  }
}
