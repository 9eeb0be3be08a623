// A product over a split dimension: each device has a partial sum of the whole 8x16 result, 512 bytes, and
// the ring over 4 devices brings it 2 * 512 * 3/4 = 768 bytes.
// RUN: shardpass-explain %s | FileCheck %s
// RUN: shardpass-opt %s partition --mlir-print-debuginfo | shardpass-explain - | FileCheck %s --check-prefix=AGAIN

// CHECK: partial-sums.mlir: 4 devices mesh['x'=4]: 1 collective, each device receives 768 B
// CHECK: collective {{ *}}axes {{ *}}bytes {{ *}}line {{ *}}reason
// CHECK-NEXT: 1 {{ *}}all_reduce {{ *}}x (4) {{ *}}768 B {{ *}}{{.*}}partial-sums.mlir:[[# @LINE + 7]]:{{[0-9]+}} {{.*}}dot_general
// CHECK: 1 x all_reduce: 768 B

// AGAIN: 4 devices mesh['x'=4]: 1 collective, each device receives 768 B
// AGAIN: all_reduce {{ *}}x (4) {{ *}}768 B {{ *}}{{.*}}partial-sums.mlir:
module attributes {mhlo.num_partitions = 4 : i32, shardpass.mesh = "mesh['x'=4]"} {
  func.func @main(%a: tensor<8x32xf32> {mhlo.sharding = "{devices=[1,4]<=[4]}"}, %b: tensor<32x16xf32> {mhlo.sharding = "{devices=[4,1]<=[4]}"}) -> (tensor<8x16xf32> {mhlo.sharding = "{replicated}"}) {
    %0 = stablehlo.dot_general %a, %b, contracting_dims = [1] x [0] : (tensor<8x32xf32>, tensor<32x16xf32>) -> tensor<8x16xf32>
    return %0 : tensor<8x16xf32>
  }
}
