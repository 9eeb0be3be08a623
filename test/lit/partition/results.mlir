// Results leave in the sharding that they declare; an argument may be a result as it is.
// RUN: shardpass-opt %s 'shardpass-import,shardpass-propagate,shardpass-partition' | FileCheck %s

// CHECK-LABEL: func.func @main(
// CHECK-SAME: %[[X:[^:]*]]: tensor<4xf32>
// CHECK-SAME: -> (tensor<4xf32> {{{.*}}shardpass.sharding = "{devices=[2]<=[2]}"}, tensor<8xf32> {{{.*}}shardpass.sharding = "{replicated}"})
// CHECK-NEXT: %[[WHOLE:.*]] = stablehlo.custom_call @shardpass.redistribute(%[[X]]) {{{.*}}shardpass.cause = "result 1 of the program"
// CHECK-SAME: (tensor<4xf32>) -> tensor<8xf32>
// CHECK-NEXT: return %[[X]], %[[WHOLE]] : tensor<4xf32>, tensor<8xf32>
func.func @main(%x: tensor<8xf32> {mhlo.sharding = "{devices=[2]<=[2]}"})
    -> (tensor<8xf32> {mhlo.sharding = "{devices=[2]<=[2]}"}, tensor<8xf32> {mhlo.sharding = "{replicated}"}) {
  return %x, %x : tensor<8xf32>, tensor<8xf32>
}
