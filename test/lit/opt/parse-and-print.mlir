// Without a pipeline the module is parsed, verified and printed.
// RUN: shardpass-opt %s | FileCheck %s
// RUN: shardpass-opt < %s | FileCheck %s
// RUN: shardpass-opt - < %s | FileCheck %s
// PROCESSES: real

// CHECK-LABEL: func.func @main(
// CHECK-SAME: %[[A:.*]]: tensor<4xf32> {mhlo.sharding = "{devices=[2]0,1}"}) -> tensor<4xf32>
// CHECK-NEXT: %[[SUM:.*]] = stablehlo.add %[[A]], %[[A]] : tensor<4xf32>
// CHECK-NEXT: return %[[SUM]] : tensor<4xf32>
func.func @main(%a: tensor<4xf32> {mhlo.sharding = "{devices=[2]0,1}"}) -> tensor<4xf32> {
  %sum = stablehlo.add %a, %a : tensor<4xf32>
  return %sum : tensor<4xf32>
}
