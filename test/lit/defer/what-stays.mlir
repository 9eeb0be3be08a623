// Redistributions that have nothing to wait for.
// RUN: shardpass-opt %s --split-input-file shardpass-defer | FileCheck %s

// CHECK-LABEL: module @more_bits
// CHECK: %[[R:.*]] = stablehlo.custom_call @shardpass.redistribute(%arg0)
// CHECK: stablehlo.convert %[[R]]
module @more_bits attributes {mhlo.num_partitions = 2 : i32, shardpass.mesh = "mesh['x'=2]"} {
  func.func @main(%x: tensor<4x8xbf16>) -> tensor<8x8xf32> {
    %0 = stablehlo.custom_call @shardpass.redistribute(%x) {shardpass.from = "{devices=[2,1]<=[2]}", shardpass.to = "{replicated}", shardpass.global_type = tensor<8x8xbf16>} : (tensor<4x8xbf16>) -> tensor<8x8xbf16>
    %1 = stablehlo.convert %0 : (tensor<8x8xbf16>) -> tensor<8x8xf32>
    return %1 : tensor<8x8xf32>
  }
}

// -----
// The dimension that is cut is the one that is gathered.
// CHECK-LABEL: module @cut_where_split
// CHECK: %[[R:.*]] = stablehlo.custom_call @shardpass.redistribute(%arg0)
// CHECK: stablehlo.slice %[[R]]
module @cut_where_split attributes {mhlo.num_partitions = 2 : i32, shardpass.mesh = "mesh['x'=2]"} {
  func.func @main(%x: tensor<4x8xf32>) -> tensor<6x8xf32> {
    %0 = stablehlo.custom_call @shardpass.redistribute(%x) {shardpass.from = "{devices=[2,1]<=[2]}", shardpass.to = "{replicated}", shardpass.global_type = tensor<8x8xf32>} : (tensor<4x8xf32>) -> tensor<8x8xf32>
    %1 = stablehlo.slice %0 [1:7, 0:8] : (tensor<8x8xf32>) -> tensor<6x8xf32>
    return %1 : tensor<6x8xf32>
  }
}

// -----
// The whole is used too.
// CHECK-LABEL: module @used_twice
// CHECK: %[[R:.*]] = stablehlo.custom_call @shardpass.redistribute(%arg0)
// CHECK: stablehlo.convert %[[R]]
module @used_twice attributes {mhlo.num_partitions = 2 : i32, shardpass.mesh = "mesh['x'=2]"} {
  func.func @main(%x: tensor<4x8xf32>) -> (tensor<8x8xbf16>, tensor<8x8xf32>) {
    %0 = stablehlo.custom_call @shardpass.redistribute(%x) {shardpass.from = "{devices=[2,1]<=[2]}", shardpass.to = "{replicated}", shardpass.global_type = tensor<8x8xf32>} : (tensor<4x8xf32>) -> tensor<8x8xf32>
    %1 = stablehlo.convert %0 : (tensor<8x8xf32>) -> tensor<8x8xbf16>
    return %1, %0 : tensor<8x8xbf16>, tensor<8x8xf32>
  }
}

// -----
// Nothing is sent: every device has what it takes, and converts the less.
// CHECK-LABEL: module @nothing_sent
// CHECK: %[[R:.*]] = stablehlo.custom_call @shardpass.redistribute(%arg0)
// CHECK: stablehlo.convert %[[R]]
module @nothing_sent attributes {mhlo.num_partitions = 2 : i32, shardpass.mesh = "mesh['x'=2]"} {
  func.func @main(%x: tensor<8x8xf32>) -> tensor<4x8xbf16> {
    %0 = stablehlo.custom_call @shardpass.redistribute(%x) {shardpass.from = "{replicated}", shardpass.to = "{devices=[2,1]<=[2]}", shardpass.global_type = tensor<8x8xf32>} : (tensor<8x8xf32>) -> tensor<4x8xf32>
    %1 = stablehlo.convert %0 : (tensor<4x8xf32>) -> tensor<4x8xbf16>
    return %1 : tensor<4x8xbf16>
  }
}
