// THREE_FRY puts the words of a tile far apart in its count: every device makes all bits from the one state and keeps
// its part. Nothing is sent.
// RUN: shardpass-opt %s partition | FileCheck %s
// RUN: shardpass-run %s partition --devices 4 --check

// CHECK-LABEL: func.func @main(
// CHECK-NOT: channel_handle
// CHECK: stablehlo.rng_bit_generator %arg0, algorithm = THREE_FRY : (tensor<2xui64>) -> (tensor<2xui64>, tensor<8xui32>)
// CHECK: stablehlo.dynamic_slice
// CHECK-NOT: channel_handle
module attributes {mhlo.num_partitions = 4 : i32} {
  func.func @main(%state: tensor<2xui64>) -> (tensor<8xui32> {mhlo.sharding = "{devices=[4]<=[4]}"}) {
    %0:2 = stablehlo.rng_bit_generator %state, algorithm = THREE_FRY
      : (tensor<2xui64>) -> (tensor<2xui64>, tensor<8xui32>)
    return %0#1 : tensor<8xui32>
  }
}
