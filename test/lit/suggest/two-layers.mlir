// Two products in a row on 8 devices. Whole, a device holds x, w1, w2 (256, 16 and 16 KiB) and both products (256 KiB
// each) at once; with rows split, an eighth of all but the weights.
// RUN: shardpass-suggest %s --mesh d=8 --memory-limit 200KiB | FileCheck %s
// RUN: shardpass-suggest %s --mesh d=8 --memory-limit 200KiB --json | FileCheck %s --check-prefix=JSON
// RUN: shardpass-suggest - --mesh d=8 < %s | FileCheck %s --check-prefix=FREE
// PROCESSES: real

// CHECK: on d=8, at most 200 KiB on a device:
// CHECK-NEXT: in_shardings:
// CHECK-NEXT: %x = P('d', None)  # saves {{.*}} of memory
// CHECK-NOT: P(
// CHECK: before {{ *}}0 B {{ *}}
// CHECK: after {{ *}}0 B {{ *}}128 KiB
// JSON: "mesh": "d=8"
// JSON: "memory_limit": 204800
// JSON: "spec": "P('d', None)"
// JSON: "%x": "P('d', None)"
// JSON: "memory": 131072
// FREE: argument 0 = P('d', None)
func.func @main(%x: tensor<1024x64xf32>, %w1: tensor<64x64xf32>, %w2: tensor<64x64xf32>) -> tensor<1024x64xf32> {
  %0 = stablehlo.dot_general %x, %w1, contracting_dims = [1] x [0] : (tensor<1024x64xf32>, tensor<64x64xf32>) -> tensor<1024x64xf32>
  %1 = stablehlo.dot_general %0, %w2, contracting_dims = [1] x [0] : (tensor<1024x64xf32>, tensor<64x64xf32>) -> tensor<1024x64xf32>
  return %1 : tensor<1024x64xf32>
}
