// A TPU's own algorithm is not known: every device makes all bits from the one state and keeps its rows.
// RUN: shardpass-opt %s 'partition{machine=v5e}' | FileCheck %s
// RUN: shardpass-run %s 'partition{machine=v5e}' --devices 4 --check

// CHECK-LABEL: func.func @main(
// CHECK-NOT: channel_handle
// CHECK: stablehlo.rng_bit_generator %arg0, algorithm = DEFAULT : (tensor<2xui64>) -> (tensor<2xui64>, tensor<16x8xui32>)
// CHECK: stablehlo.dynamic_slice {{.*}} sizes = [4, 8]
// CHECK-NOT: channel_handle
module attributes {mhlo.num_partitions = 4 : i32} {
  func.func @main(%s: tensor<2xui64>) -> (tensor<16x8xui32> {mhlo.sharding = "{devices=[4,1]<=[4]}"}) {
    %0, %1 = stablehlo.rng_bit_generator %s, algorithm = DEFAULT : (tensor<2xui64>) -> (tensor<2xui64>, tensor<16x8xui32>)
    return %1 : tensor<16x8xui32>
  }
}
