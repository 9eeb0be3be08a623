// A callee that calls is inlined with what it calls; a call inside a region is inlined in place.
// RUN: shardpass-opt %s import | FileCheck %s

// CHECK-LABEL: func.func @main(
// CHECK-SAME: %[[X:[^:]*]]: tensor<8xf32> {{{.*}}}, %[[P:[^:]*]]: tensor<i1>
// CHECK: %[[ABS:.*]] = stablehlo.abs %[[X]]
// CHECK-NEXT: %[[NEG:.*]] = stablehlo.negate %[[ABS]]
// CHECK-NEXT: %[[IF:.*]] = "stablehlo.if"(%[[P]])
// CHECK: stablehlo.abs %[[NEG]]
// CHECK: stablehlo.return
// CHECK: return %[[IF]]
// CHECK-NOT: func.func
func.func @main(%x: tensor<8xf32> {mhlo.sharding = "{devices=[2]<=[2]}"}, %p: tensor<i1>) -> tensor<8xf32> {
  %0 = call @outer(%x) : (tensor<8xf32>) -> tensor<8xf32>
  %1 = "stablehlo.if"(%p) ({
    %2 = func.call @inner(%0) : (tensor<8xf32>) -> tensor<8xf32>
    stablehlo.return %2 : tensor<8xf32>
  }, {
    stablehlo.return %0 : tensor<8xf32>
  }) : (tensor<i1>) -> tensor<8xf32>
  return %1 : tensor<8xf32>
}
func.func private @outer(%x: tensor<8xf32>) -> tensor<8xf32> {
  %0 = call @inner(%x) : (tensor<8xf32>) -> tensor<8xf32>
  %1 = stablehlo.negate %0 : tensor<8xf32>
  return %1 : tensor<8xf32>
}
func.func private @inner(%x: tensor<8xf32>) -> tensor<8xf32> {
  %0 = stablehlo.abs %x : tensor<8xf32>
  return %0 : tensor<8xf32>
}
