// Bytecode goes out and comes in again with its locations.
// RUN: shardpass-opt %s --emit-bytecode -o %t.mlirbc
// RUN: shardpass-opt %t.mlirbc --mlir-print-debuginfo | FileCheck %s
// RUN: shardpass-opt %s --emit-bytecode | shardpass-opt - cse | FileCheck %s --check-prefix=CSE
// RUN: exits 2 shardpass-opt %s --emit-bytecode --split-input-file 2>&1 | FileCheck %s --check-prefix=USAGE

// CHECK: stablehlo.add
// CHECK: loc("{{.*}}bytecode.mlir":[[# @LINE + 5]]:8)
// CSE: func.func @main
// CSE-NOT: stablehlo.add
// USAGE: error: --emit bytecode writes one module
func.func @main(%a: tensor<4xf32>) -> tensor<4xf32> {
  %0 = stablehlo.add %a, %a : tensor<4xf32>
  return %a : tensor<4xf32>
}
