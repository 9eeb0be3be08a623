// RUN: exits 1 shardpass-opt %s partition 2>&1 | FileCheck %s
// RUN: exits 1 shardpass-check %s 2>&1 | FileCheck %s

// CHECK: device-listed-twice.mlir:[[# @LINE + 7]]:{{[0-9]+}}: error: this sharding cannot be read: {devices=[4,1]0,1,1,3} [SP202]
// CHECK-NEXT: help:
// CHECK-NEXT: note: device 1 is listed 2 times
// CHECK-NEXT: {devices=[4,1]0,1,1,3}
// CHECK-NEXT: ^
// CHECK-NEXT: help: list each device once
// CHECK-NOT: error:
func.func @main(%a: tensor<4x8xf32> {mhlo.sharding = "{devices=[4,1]0,1,1,3}"}) -> tensor<4x8xf32> {
  return %a : tensor<4x8xf32>
}
