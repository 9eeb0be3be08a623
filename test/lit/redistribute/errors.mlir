// RUN: shardpass-opt %s 'builtin.module(shardpass-redistribute)' --split-input-file --verify-diagnostics

module attributes {mhlo.num_partitions = 2 : i32} {
  func.func public @main(%x: tensor<2x4xf32>) -> tensor<4x4xf32> {
    // expected-error@+1 {{shardpass.redistribute has no attribute shardpass.to}}
    %0 = stablehlo.custom_call @shardpass.redistribute(%x) {shardpass.from = "{devices=[2,1]<=[2]}", shardpass.global_type = tensor<4x4xf32>} : (tensor<2x4xf32>) -> tensor<4x4xf32>
    return %0 : tensor<4x4xf32>
  }
}

// -----

module attributes {mhlo.num_partitions = 2 : i32} {
  func.func public @main(%x: tensor<3x4xf32>) -> tensor<4x4xf32> {
    // expected-error@+1 {{has the operand type tensor<3x4xf32>, but the tile is tensor<2x4xf32>}}
    %0 = stablehlo.custom_call @shardpass.redistribute(%x) {shardpass.from = "{devices=[2,1]<=[2]}", shardpass.to = "{replicated}", shardpass.global_type = tensor<4x4xf32>} : (tensor<3x4xf32>) -> tensor<4x4xf32>
    return %0 : tensor<4x4xf32>
  }
}

// -----

module attributes {mhlo.num_partitions = 2 : i32} {
  func.func public @main(%x: tensor<2x4xf32>) -> tensor<4x4xf32> {
    // expected-error@+1 {{the source sharding {manual} does not specify which part of the array is on each device}}
    %0 = stablehlo.custom_call @shardpass.redistribute(%x) {shardpass.from = "{manual}", shardpass.to = "{replicated}", shardpass.global_type = tensor<4x4xf32>} : (tensor<2x4xf32>) -> tensor<4x4xf32>
    return %0 : tensor<4x4xf32>
  }
}

// -----

module attributes {mhlo.num_partitions = 4 : i32} {
  func.func public @main(%x: tensor<2x4xf32>) -> tensor<4x4xf32> {
    // expected-error@+1 {{the source sharding is over 2 devices and the target over 4}}
    %0 = stablehlo.custom_call @shardpass.redistribute(%x) {shardpass.from = "{devices=[2,1]<=[2]}", shardpass.to = "{replicated}", shardpass.global_type = tensor<4x4xf32>} : (tensor<2x4xf32>) -> tensor<4x4xf32>
    return %0 : tensor<4x4xf32>
  }
}
