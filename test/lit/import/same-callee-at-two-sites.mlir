// Each call gets a body of its own; functions that nothing calls any more go.
// RUN: shardpass-opt %s import | FileCheck %s

// CHECK-LABEL: func.func @main(
// CHECK-SAME: %[[X:[^:]*]]: tensor<8xf32>
// CHECK-NEXT: %[[ONE:.*]] = stablehlo.negate %[[X]]
// CHECK-NEXT: %[[TWO:.*]] = stablehlo.negate %[[ONE]]
// CHECK-NEXT: return %[[TWO]]
// CHECK-NOT: func.func
// CHECK-NOT: call
func.func @main(%x: tensor<8xf32> {mhlo.sharding = "{devices=[2]<=[2]}"}) -> tensor<8xf32> {
  %0 = call @turn(%x) : (tensor<8xf32>) -> tensor<8xf32>
  %1 = call @turn(%0) : (tensor<8xf32>) -> tensor<8xf32>
  return %1 : tensor<8xf32>
}
func.func private @turn(%x: tensor<8xf32>) -> tensor<8xf32> {
  %0 = stablehlo.negate %x : tensor<8xf32>
  return %0 : tensor<8xf32>
}
