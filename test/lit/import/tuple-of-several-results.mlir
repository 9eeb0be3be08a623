// An op of several results has a tuple of shardings, one for each; another number is an error.
// RUN: shardpass-opt %s import --split-input-file --verify-diagnostics | FileCheck %s

// CHECK: stablehlo.optimization_barrier {mhlo.sharding = "{{[{][{]}}devices=[2]<=[2]}, {replicated}}", shardpass.pinned}
func.func @main(%x: tensor<8xf32>, %y: tensor<4xi32>) -> tensor<8xf32> {
  %0:2 = stablehlo.optimization_barrier {mhlo.sharding = "{{devices=[2]<=[2]}, {replicated}}"} %x, %y : tensor<8xf32>, tensor<4xi32>
  return %0#0 : tensor<8xf32>
}

// -----

func.func @main(%x: tensor<8xf32>, %y: tensor<4xi32>) -> tensor<8xf32> {
  // expected-error@below {{has 3 leaves, but the op has 2 results [SP210]}}
  %0:2 = stablehlo.optimization_barrier {mhlo.sharding = "{{devices=[2]<=[2]}, {replicated}, {replicated}}"} %x, %y : tensor<8xf32>, tensor<4xi32>
  return %0#0 : tensor<8xf32>
}
