// JAX gives arguments a name instead of a line, and functions nothing; the error names the line all the same.
// RUN: shardpass-opt %s partition --verify-diagnostics
// RUN: exits 1 shardpass-check %s 2>&1 | FileCheck %s

// CHECK: argument-of-a-jax-module.mlir:[[# @LINE + 4]]:57: error: {{.*}} [SP203]
#loc = loc(unknown)
module @jit_f {
  // expected-error@below {{the sharding {devices=[2,1]<=[2]} splits 2 dimensions, but the value is tensor<8xf32> and has 1}}
  func.func public @main(%arg0: tensor<8xf32> loc("x"), %arg1: tensor<8xf32> {mhlo.sharding = "{devices=[2,1]<=[2]}"} loc("params['w']")) -> tensor<8xf32> {
    return %arg0 : tensor<8xf32> loc(#loc)
  } loc(#loc)
} loc(#loc)
