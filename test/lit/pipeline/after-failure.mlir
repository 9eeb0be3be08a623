// The module at which a pass failed can be printed, and passes after it do not run.
// RUN: exits 1 shardpass-opt %s partition --mlir-print-ir-after-failure 2>&1 | FileCheck %s

// CHECK: IR Dump After {{.*}} Failed: shardpass-import
// CHECK: func.func @main
// CHECK-NOT: IR Dump
// CHECK: error: {{.*}} [SP203]
func.func @main(%a: tensor<4xf32> {mhlo.sharding = "{devices=[2,1]0,1}"}) -> tensor<4xf32> {
  return %a : tensor<4xf32>
}
