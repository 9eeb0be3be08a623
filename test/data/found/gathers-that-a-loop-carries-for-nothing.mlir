// Two joined all_gathers whose results only reach values that a loop carries for nothing: XLA aborted.
module attributes {mhlo.num_partitions = 4 : i32, mhlo.num_replicas = 1 : i32} {
  func.func @main(%x: tensor<4xf32> {mhlo.sharding = "{devices=[4]<=[2,2]T(1,0)}"}) -> (tensor<i32>) {
    %none = stablehlo.constant dense<0.0> : tensor<f32>
    %zero = stablehlo.constant dense<0> : tensor<i32>
    %0 = stablehlo.slice %x [3:4] : (tensor<4xf32>) -> tensor<1xf32>
    %1 = stablehlo.slice %x [0:1] : (tensor<4xf32>) -> tensor<1xf32>
    %2 = stablehlo.reduce(%0 init: %none) applies stablehlo.add across dimensions = [0] : (tensor<1xf32>, tensor<f32>) -> tensor<f32>
    %3:3 = stablehlo.while(%i = %zero, %y = %1, %z = %2) : tensor<i32>, tensor<1xf32>, tensor<f32>
    cond {
      %three = stablehlo.constant dense<3> : tensor<i32>
      %more = stablehlo.compare LT, %i, %three : (tensor<i32>, tensor<i32>) -> tensor<i1>
      stablehlo.return %more : tensor<i1>
    } do {
      %one = stablehlo.constant dense<1> : tensor<i32>
      %next = stablehlo.add %i, %one : tensor<i32>
      stablehlo.return %next, %1, %z : tensor<i32>, tensor<1xf32>, tensor<f32>
    }
    return %3#0 : tensor<i32>
  }
}
