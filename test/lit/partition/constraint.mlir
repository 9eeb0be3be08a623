// A constraint is a change of sharding at its line, and says so.
// RUN: shardpass-opt %s 'shardpass-import,shardpass-propagate{effort=0},shardpass-partition' --mlir-print-debuginfo | FileCheck %s

// CHECK-LABEL: func.func @main(
// CHECK-SAME: %[[X:[^:]*]]: tensor<4x8xf32>
// CHECK-NEXT: stablehlo.custom_call @shardpass.redistribute(%[[X]]) {
// CHECK-SAME: shardpass.cause = "a sharding constraint"
// CHECK-SAME: shardpass.from = "{devices=[2,1]<=[2]}"
// CHECK-SAME: shardpass.global_type = tensor<8x8xf32>
// CHECK-SAME: shardpass.to = "{devices=[1,2]<=[2]}"
// CHECK-SAME: : (tensor<4x8xf32>) -> tensor<8x4xf32> loc(#[[WHERE:.*]])
// CHECK: #[[WHERE]] = loc("{{.*}}":[[# @LINE + 2]]:8)
func.func @main(%x: tensor<8x8xf32> {mhlo.sharding = "{devices=[2,1]<=[2]}"}) -> tensor<8x8xf32> {
  %0 = stablehlo.custom_call @Sharding(%x) {mhlo.sharding = "{devices=[1,2]<=[2]}"} : (tensor<8x8xf32>) -> tensor<8x8xf32>
  return %0 : tensor<8x8xf32>
}
