// RUN: shardpass-opt %s partition --verify-diagnostics
// RUN: exits 1 shardpass-check %s 2>&1 | FileCheck %s

// Both are found in one go, on the argument and on the constraint.
// CHECK: rank-mismatch.mlir:[[# @LINE + 6]]:{{[0-9]+}}: error: {{.*}} [SP203]
// CHECK-NEXT: help:
// CHECK-NEXT: rank-mismatch.mlir:[[# @LINE + 6]]:{{[0-9]+}}: error: {{.*}} [SP203]
// CHECK-NEXT: help:
// CHECK-NOT: error:
// expected-error-re@below {{the sharding {devices=[2]0,1} splits 1 dimension{{s?}}, but the value is tensor<4x8xf32> and has 2}}
func.func @main(%a: tensor<4x8xf32> {mhlo.sharding = "{devices=[2]0,1}"}) -> tensor<4x8xf32> {
  // expected-error@below {{the sharding {devices=[2,1,1]0,1} splits 3 dimensions, but the value is tensor<4x8xf32> and has 2}}
  %0 = stablehlo.custom_call @Sharding(%a) {mhlo.sharding = "{devices=[2,1,1]0,1}"} : (tensor<4x8xf32>) -> tensor<4x8xf32>
  return %0 : tensor<4x8xf32>
}
