// A value is wanted replicated, and then only a part of it, or fewer bits: those are gathered.
// RUN: shardpass-opt %s --split-input-file 'shardpass-import,shardpass-propagate{effort=0},shardpass-partition,shardpass-defer' | FileCheck %s

// CHECK-LABEL: func.func @main(%arg0: tensor<4x8xf32>
// CHECK: %[[C:.*]] = stablehlo.convert %arg0 : (tensor<4x8xf32>) -> tensor<4x8xbf16>
// CHECK: stablehlo.custom_call @shardpass.redistribute(%[[C]])
// CHECK-SAME: shardpass.global_type = tensor<8x8xbf16>
func.func @main(%fewer_bits: tensor<8x8xf32> {mhlo.sharding = "{devices=[2,1]<=[2]}"}) -> (tensor<8x8xbf16> {mhlo.sharding = "{replicated}"}) {
  %0 = stablehlo.custom_call @Sharding(%fewer_bits) {mhlo.sharding = "{replicated}"} : (tensor<8x8xf32>) -> tensor<8x8xf32>
  %1 = stablehlo.convert %0 : (tensor<8x8xf32>) -> tensor<8x8xbf16>
  %2 = stablehlo.negate %1 : tensor<8x8xbf16>
  return %2 : tensor<8x8xbf16>
}

// -----
// Uneven: 5 rows are two tiles of 3. Both ops go first, one after the other.
// CHECK-LABEL: func.func @main(%arg0: tensor<3x64xf32>
// CHECK: %[[S:.*]] = stablehlo.slice %arg0 [0:3, 8:12] : (tensor<3x64xf32>) -> tensor<3x4xf32>
// CHECK: %[[C:.*]] = stablehlo.convert %[[S]] : (tensor<3x4xf32>) -> tensor<3x4xf16>
// CHECK: stablehlo.custom_call @shardpass.redistribute(%[[C]])
// CHECK-SAME: shardpass.global_type = tensor<5x4xf16>
func.func @main(%part: tensor<5x64xf32> {mhlo.sharding = "{devices=[2,1]<=[2]}"}) -> (tensor<5x4xf16> {mhlo.sharding = "{replicated}"}) {
  %0 = stablehlo.custom_call @Sharding(%part) {mhlo.sharding = "{replicated}"} : (tensor<5x64xf32>) -> tensor<5x64xf32>
  %1 = stablehlo.slice %0 [0:5, 8:12] : (tensor<5x64xf32>) -> tensor<5x4xf32>
  %2 = stablehlo.convert %1 : (tensor<5x4xf32>) -> tensor<5x4xf16>
  return %2 : tensor<5x4xf16>
}
