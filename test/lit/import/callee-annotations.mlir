// What a callee says of its arguments and results becomes constraints around its body.
// RUN: shardpass-opt %s import | FileCheck %s

// CHECK-LABEL: func.func @main(
// CHECK-SAME: %[[X:[^:]*]]: tensor<8x8xf32>
// CHECK-NEXT: %[[IN:.*]] = stablehlo.custom_call @Sharding(%[[X]]) {{{.*}}mhlo.sharding = "{devices=[2,1]<=[2]}"}
// CHECK-NEXT: %[[NEG:.*]] = stablehlo.negate %[[IN]]
// CHECK-NEXT: %[[OUT:.*]] = stablehlo.custom_call @Sharding(%[[NEG]]) {{{.*}}mhlo.sharding = "{devices=[1,2]<=[2]}"}
// CHECK-NEXT: return %[[OUT]]
func.func @main(%x: tensor<8x8xf32>) -> tensor<8x8xf32> {
  %0 = call @f(%x) : (tensor<8x8xf32>) -> tensor<8x8xf32>
  return %0 : tensor<8x8xf32>
}
func.func private @f(%x: tensor<8x8xf32> {mhlo.sharding = "{devices=[2,1]<=[2]}"})
    -> (tensor<8x8xf32> {mhlo.sharding = "{devices=[1,2]<=[2]}"}) {
  %0 = stablehlo.negate %x : tensor<8x8xf32>
  return %0 : tensor<8x8xf32>
}
