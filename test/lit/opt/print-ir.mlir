// RUN: shardpass-opt %s cse,symbol-dce --mlir-print-ir-before-all -o %t 2>&1 | FileCheck %s --check-prefixes=BEFORE
// RUN: shardpass-opt %s cse,symbol-dce --mlir-print-ir-after-all -o %t 2>&1 | FileCheck %s --check-prefixes=AFTER
// RUN: shardpass-opt %s cse -mlir-print-ir-after-all -mlir-print-debuginfo -o %t 2>&1 | FileCheck %s --check-prefixes=LOC

// BEFORE: IR Dump Before {{.*}}cse
// BEFORE: stablehlo.add
// BEFORE: IR Dump Before {{.*}}symbol-dce
// BEFORE-NOT: stablehlo.add
// BEFORE-NOT: IR Dump After

// AFTER-NOT: IR Dump Before
// AFTER: IR Dump After {{.*}}cse
// AFTER-NOT: stablehlo.add
// AFTER: IR Dump After {{.*}}symbol-dce

// LOC: IR Dump After {{.*}}cse
// LOC: loc({{.*}}print-ir.mlir":[[# @LINE + 1]]:{{[0-9]+}})
func.func @main(%a: tensor<4xf32>) -> tensor<4xf32> {
  %0 = stablehlo.add %a, %a : tensor<4xf32>
  return %a : tensor<4xf32>
}
