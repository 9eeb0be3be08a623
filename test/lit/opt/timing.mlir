// RUN: shardpass-opt %s cse,func.func(canonicalize) --mlir-timing -o %t 2>&1 | FileCheck %s

// CHECK: Execution time report
// CHECK-DAG: CSE
// CHECK-DAG: Canonicalizer
// CHECK-DAG: Total
func.func @main() { return }
