// RUN: exits 1 shardpass-opt %s partition 2>&1 | FileCheck %s
// RUN: exits 1 shardpass-check %s 2>&1 | FileCheck %s

// Value and place of the annotation, and the fault in it with a caret.
// CHECK: sharding-does-not-parse.mlir:[[# @LINE + 7]]:{{[0-9]+}}: error: this sharding cannot be read: {devices=[2,1]0,1 [SP202]
// CHECK-NEXT: help:
// CHECK-NEXT: note: expected '}'
// CHECK-NEXT: {devices=[2,1]0,1
// CHECK-NEXT: ^
// CHECK-NEXT: help: close the brace
// CHECK-NOT: error:
func.func @main(%a: tensor<4x8xf32> {mhlo.sharding = "{devices=[2,1]0,1"}) -> tensor<4x8xf32> {
  return %a : tensor<4x8xf32>
}
