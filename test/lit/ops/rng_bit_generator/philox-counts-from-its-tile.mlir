// Each device counts to its own rows: 4 rows of 8 words begin 8 blocks after the device before.
// RUN: shardpass-opt %s partition | FileCheck %s
// RUN: shardpass-run %s partition --devices 4 --check

// CHECK-LABEL: func.func @main(
// CHECK: stablehlo.partition_id
// CHECK: %[[STATE:.*]] = stablehlo.concatenate {{.*}} -> tensor<3xui64>
// CHECK: stablehlo.rng_bit_generator %[[STATE]], algorithm = PHILOX : (tensor<3xui64>) -> (tensor<3xui64>, tensor<4x8xui32>)
// CHECK-NOT: tensor<16x8xui32>
// CHECK-NOT: stablehlo.all_
module attributes {mhlo.num_partitions = 4 : i32} {
  func.func @main(%s: tensor<2xui64>) -> (tensor<16x8xui32> {mhlo.sharding = "{devices=[4,1]<=[4]}"}) {
    %0, %1 = stablehlo.rng_bit_generator %s, algorithm = DEFAULT : (tensor<2xui64>) -> (tensor<2xui64>, tensor<16x8xui32>)
    return %1 : tensor<16x8xui32>
  }
}
