// A constraint in the body of a loop leaves dimensions to propagation as one outside does.
// RUN: shardpass-opt %s import | FileCheck %s

// CHECK-LABEL: func.func @main
// CHECK: stablehlo.while
// CHECK: } do {
// CHECK: stablehlo.custom_call @Sharding(%{{.*}}) {
// CHECK-NOT: backend_config = "unspecified
// CHECK-SAME: mhlo.sharding = "{devices=[2,1]<=[2]}", shardpass.unspecified_dims = array<i64: 1>}
func.func @main(%x: tensor<8x4xf32>, %n: tensor<i32>) -> tensor<8x4xf32> {
  %zero = stablehlo.constant dense<0> : tensor<i32>
  %0:2 = stablehlo.while(%i = %zero, %c = %x) : tensor<i32>, tensor<8x4xf32>
    cond {
      %more = stablehlo.compare LT, %i, %n : (tensor<i32>, tensor<i32>) -> tensor<i1>
      stablehlo.return %more : tensor<i1>
    } do {
      %one = stablehlo.constant dense<1> : tensor<i32>
      %next = stablehlo.add %i, %one : tensor<i32>
      %split = stablehlo.custom_call @Sharding(%c) {backend_config = "unspecified_dims=[1]", mhlo.sharding = "{devices=[2,1]<=[2]}"} : (tensor<8x4xf32>) -> tensor<8x4xf32>
      %negated = stablehlo.negate %split : tensor<8x4xf32>
      stablehlo.return %next, %negated : tensor<i32>, tensor<8x4xf32>
    }
  return %0#1 : tensor<8x4xf32>
}
