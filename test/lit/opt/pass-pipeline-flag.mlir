// The pipeline may be the second argument or a flag, with one dash or two, before or after the module.
// RUN: shardpass-opt %s 'builtin.module(func.func(cse))' | FileCheck %s
// RUN: shardpass-opt %s --pass-pipeline='builtin.module(func.func(cse))' | FileCheck %s
// RUN: shardpass-opt -pass-pipeline='builtin.module(func.func(cse))' %s | FileCheck %s
// RUN: shardpass-opt %s -o - 'builtin.module(func.func(cse))' | FileCheck %s
// RUN: shardpass-opt %s | FileCheck %s --check-prefix=UNTOUCHED

// The second sum is the first one again.
// CHECK-LABEL: func.func @main
// CHECK: %[[SUM:.*]] = stablehlo.add
// CHECK-NOT: stablehlo.add
// CHECK: stablehlo.multiply %[[SUM]], %[[SUM]]

// UNTOUCHED-LABEL: func.func @main
// UNTOUCHED: stablehlo.add
// UNTOUCHED: stablehlo.add
// UNTOUCHED: stablehlo.multiply
func.func @main(%a: tensor<4xf32>) -> tensor<4xf32> {
  %0 = stablehlo.add %a, %a : tensor<4xf32>
  %1 = stablehlo.add %a, %a : tensor<4xf32>
  %2 = stablehlo.multiply %0, %1 : tensor<4xf32>
  return %2 : tensor<4xf32>
}
