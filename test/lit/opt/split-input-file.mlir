// Each part is a module of its own; a failure in one leaves the others alone, and lines are the file's.
// RUN: exits 1 shardpass-opt %s --split-input-file > %t.out 2> %t.err
// RUN: FileCheck %s < %t.out
// RUN: FileCheck %s --check-prefix=ERROR < %t.err

// CHECK-LABEL: func.func @first
// CHECK: // -----
// CHECK-LABEL: func.func @third
// CHECK-NOT: // -----

// ERROR: split-input-file.mlir:[[# @LINE + 6]]:23: error: {{.*}}retrun{{.*}} [SP101]
// ERROR-NOT: split-input-file.mlir:{{.*}} error:
func.func @first() { return }

// -----

func.func @second() { retrun }

  // -----  is no marker: it is indented
// ----- nor is this

// -----

func.func @third() { return }
