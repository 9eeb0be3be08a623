// A product over a split dimension: each device has a partial sum of the whole 8x16 result, 512 bytes, and
// the ring over 4 devices brings it 2 * 512 * 3/4 = 768 bytes.
// RUN: shardpass-explain %s --source %S | FileCheck %s
// RUN: shardpass-opt %s partition --mlir-print-debuginfo | shardpass-explain - | FileCheck %s --check-prefix=AGAIN
// PROCESSES: real

// CHECK: partial-sums.mlir: 4 devices, x=4
// CHECK-NEXT: each device receives 768 B in 1 collective
// CHECK-NEXT: computes for {{.*}}partial-sums.mlir:[[# @LINE + 14]]); communication bounds a
// CHECK: memory of a device: 1.8 KiB (arguments 768 B, results 512 B, temporaries 512 B,
// CHECK: 100% {{ *}}768 B {{.*}}partial-sums.mlir:[[# @LINE + 12]]
// CHECK-NEXT: 1 x all_reduce over x: %0 f32[8,16], partial over x -> P()
// CHECK-NEXT: dot_general sums over a dimension that 'x' splits in %a (argument %a)
// CHECK: 1 x all_reduce: 768 B

// AGAIN: 4 devices, x=4
// AGAIN-NEXT: each device receives 768 B in 1 collective
// AGAIN-NEXT: memory of a device: 1.8 KiB (arguments 768 B, results 512 B, temporaries 512 B,
// AGAIN: {{^}}100% {{.*}}partial-sums.mlir:
// AGAIN-NEXT: 1 x all_reduce over x
module attributes {mhlo.num_partitions = 4 : i32, shardpass.mesh = "mesh['x'=4]"} {
  func.func @main(%a: tensor<8x32xf32> {mhlo.sharding = "{devices=[1,4]<=[4]}"}, %b: tensor<32x16xf32> {mhlo.sharding = "{devices=[4,1]<=[4]}"}) -> (tensor<8x16xf32> {mhlo.sharding = "{replicated}"}) {
    %0 = stablehlo.dot_general %a, %b, contracting_dims = [1] x [0] : (tensor<8x32xf32>, tensor<32x16xf32>) -> tensor<8x16xf32>
    return %0 : tensor<8x16xf32>
  }
}
