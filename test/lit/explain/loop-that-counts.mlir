// What stands in a loop that counts runs as often as the loop: 5 times 768 bytes, the ring of a partial 8x16 over 4
// devices; in shardpass-run too.
// RUN: shardpass-explain %s --effort 0 | FileCheck %s
// RUN: shardpass-run %s 'partition{effort=0}' --devices 4 --json | FileCheck %s --check-prefix=RAN

// CHECK: each device receives 3.8 KiB in 5 collectives
// CHECK: 5 x all_reduce over x
// RAN: "bytes_each": 768
// RAN: "times": 5
// RAN: "bytes_received": 3840
module attributes {mhlo.num_partitions = 4 : i32, shardpass.mesh = "mesh['x'=4]"} {
  func.func @main(%a: tensor<8x16xf32> {mhlo.sharding = "{devices=[1,4]<=[4]}"}, %b: tensor<16x16xf32> {mhlo.sharding = "{devices=[4,1]<=[4]}"}) -> (tensor<8x16xf32> {mhlo.sharding = "{replicated}"}) {
    %zero = stablehlo.constant dense<0> : tensor<i32>
    %start = stablehlo.constant dense<0.0> : tensor<8x16xf32>
    %r:2 = stablehlo.while(%k = %zero, %sum = %start) : tensor<i32>, tensor<8x16xf32> cond {
      %five = stablehlo.constant dense<5> : tensor<i32>
      %go = stablehlo.compare LT, %k, %five : (tensor<i32>, tensor<i32>) -> tensor<i1>
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
