// A loop that ends by its data counts once, and says so; --trips shows the sum for so many.
// RUN: shardpass-explain %s --effort 0 --trips 10 | FileCheck %s

// CHECK: each device receives 768 B to 7.5 KiB in 1 collective
// CHECK-NEXT: 1 collective in loops whose trips are not known count once; with 10 the greater
// CHECK: 1 x all_reduce over x in a loop of unknown length
module attributes {mhlo.num_partitions = 4 : i32, shardpass.mesh = "mesh['x'=4]"} {
  func.func @main(%a: tensor<8x16xf32> {mhlo.sharding = "{devices=[1,4]<=[4]}"}, %b: tensor<16x16xf32> {mhlo.sharding = "{devices=[4,1]<=[4]}"}) -> (tensor<8x16xf32> {mhlo.sharding = "{replicated}"}) {
    %zero = stablehlo.constant dense<0> : tensor<i32>
    %start = stablehlo.constant dense<0.0> : tensor<8x16xf32>
    %r:2 = stablehlo.while(%k = %zero, %sum = %start) : tensor<i32>, tensor<8x16xf32> cond {
      %limit = stablehlo.constant dense<9.0> : tensor<f32>
      %first = stablehlo.slice %sum [0:1, 0:1] : (tensor<8x16xf32>) -> tensor<1x1xf32>
      %value = stablehlo.reshape %first : (tensor<1x1xf32>) -> tensor<f32>
      %go = stablehlo.compare LT, %value, %limit : (tensor<f32>, tensor<f32>) -> tensor<i1>
      stablehlo.return %go : tensor<i1>
    } do {
      %p = stablehlo.dot_general %a, %b, contracting_dims = [1] x [0] : (tensor<8x16xf32>, tensor<16x16xf32>) -> tensor<8x16xf32>
      %shown = stablehlo.custom_call @Sharding(%p) {mhlo.sharding = "{replicated}"} : (tensor<8x16xf32>) -> tensor<8x16xf32>
      %t = stablehlo.tanh %shown : tensor<8x16xf32>
      %s = stablehlo.multiply %t, %sum : tensor<8x16xf32>
      %one = stablehlo.constant dense<1> : tensor<i32>
      %next = stablehlo.add %k, %one : tensor<i32>
      stablehlo.return %next, %s : tensor<i32>, tensor<8x16xf32>
    }
    return %r#1 : tensor<8x16xf32>
  }
}
