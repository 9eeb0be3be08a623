// shardpass's passes and MLIR's run in one PassManager, in the order written.
// RUN: shardpass-opt %s 'builtin.module(cse,shardpass-import,func.func(canonicalize),symbol-dce)' --mlir-print-ir-after-all -o %t 2>&1 | FileCheck %s

// CHECK: IR Dump After {{.*}}cse
// CHECK: IR Dump After {{.*}}shardpass-import
// CHECK: IR Dump After {{.*}}canonicalize
// CHECK: IR Dump After {{.*}}symbol-dce
func.func @main(%a: tensor<4xf32> {mhlo.sharding = "{devices=[2]0,1}"}) -> tensor<4xf32> {
  return %a : tensor<4xf32>
}
