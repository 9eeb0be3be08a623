// rng is no function of anything: one device's numbers are taken on all. Bits of a state are made everywhere, and sliced.
// RUN: shardpass-opt %s partition --split-input-file | FileCheck %s

module attributes {mhlo.num_partitions = 4 : i32} {
  // CHECK-LABEL: func.func public @main
  // CHECK: %[[DRAWN:.*]] = stablehlo.rng
  // CHECK: %[[KEPT:.*]] = stablehlo.select %{{.*}}, %[[DRAWN]]
  // CHECK: "stablehlo.reduce_scatter"(%[[KEPT]])
  // CHECK: device 0's are taken
  func.func public @main() -> (tensor<8xf32> {mhlo.sharding = "{devices=[4]<=[4]}"}) {
    %a = stablehlo.constant dense<0.0> : tensor<f32>
    %b = stablehlo.constant dense<1.0> : tensor<f32>
    %c = stablehlo.constant dense<8> : tensor<1xi64>
    %0 = stablehlo.rng %a, %b, %c, distribution = UNIFORM : (tensor<f32>, tensor<f32>, tensor<1xi64>) -> tensor<8xf32>
    return %0 : tensor<8xf32>
  }
}

// -----

module attributes {mhlo.num_partitions = 4 : i32} {
  // CHECK-LABEL: func.func public @main
  // CHECK-NOT: replica_groups
  // CHECK: stablehlo.rng_bit_generator %arg0, algorithm = THREE_FRY : (tensor<2xui64>) -> (tensor<2xui64>, tensor<8xui32>)
  // CHECK: stablehlo.dynamic_slice
  // CHECK-NOT: replica_groups
  func.func public @main(%state: tensor<2xui64>) -> (tensor<8xui32> {mhlo.sharding = "{devices=[4]<=[4]}"}) {
    %0:2 = stablehlo.rng_bit_generator %state, algorithm = THREE_FRY
      : (tensor<2xui64>) -> (tensor<2xui64>, tensor<8xui32>)
    return %0#1 : tensor<8xui32>
  }
}
