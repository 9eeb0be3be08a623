// RUN: exits 1 shardpass-opt %s partition 2>&1 | FileCheck %s
// RUN: exits 1 shardpass-check %s 2>&1 | FileCheck %s

// One error: MLIR's own message, the place in the file, the line with a caret, and what to do.
// CHECK: not-mlir.mlir:[[# @LINE + 5]]:1: error: custom op 'this' is unknown{{.*}} [SP101]
// CHECK-NEXT: this is not MLIR
// CHECK-NEXT: {{^    \^$}}
// CHECK-NEXT: help: correct the file at this place
// CHECK-NOT: error:
this is not MLIR
