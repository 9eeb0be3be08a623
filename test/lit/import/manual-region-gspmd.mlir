// The ops between the two conversions work on tiles already: they are marked manual, after inlining too.
// RUN: shardpass-opt %s import | FileCheck %s

// CHECK-LABEL: func.func @main(
// CHECK-SAME: %[[X:[^:]*]]: tensor<8xf32>
// Before the region and after it nothing is manual.
// CHECK: %[[ABS:.*]] = stablehlo.abs %[[X]] : tensor<8xf32>
// CHECK: %[[SAID:.*]] = stablehlo.custom_call @Sharding(%[[ABS]]) {{{.*}}mhlo.sharding = "{devices=[2]<=[2]}"}
// CHECK: %[[TILE:.*]] = stablehlo.custom_call @SPMDFullToShardShape(%[[SAID]]) {{{.*}}mhlo.sharding = "{manual}"} : (tensor<8xf32>) -> tensor<4xf32>
// CHECK: %[[NEG:.*]] = stablehlo.negate %[[TILE]] {mhlo.sharding = "{manual}"} : tensor<4xf32>
// CHECK: %[[OUT:.*]] = stablehlo.custom_call @Sharding(%[[NEG]]) {{{.*}}mhlo.sharding = "{manual}"}
// CHECK: %[[FULL:.*]] = stablehlo.custom_call @SPMDShardToFullShape(%[[OUT]]) {{{.*}}mhlo.sharding = "{devices=[2]<=[2]}"} : (tensor<4xf32>) -> tensor<8xf32>
// CHECK: stablehlo.sine %[[FULL]] : tensor<8xf32>
func.func @main(%x: tensor<8xf32>) -> tensor<8xf32> {
  %0 = stablehlo.abs %x : tensor<8xf32>
  %1 = stablehlo.custom_call @Sharding(%0) {backend_config = "", mhlo.sharding = "{devices=[2]<=[2]}"} : (tensor<8xf32>) -> tensor<8xf32>
  %2 = stablehlo.custom_call @SPMDFullToShardShape(%1) {backend_config = "", mhlo.sharding = "{manual}"} : (tensor<8xf32>) -> tensor<4xf32>
  %3 = call @shmap_body(%2) : (tensor<4xf32>) -> tensor<4xf32>
  %4 = stablehlo.custom_call @Sharding(%3) {backend_config = "", mhlo.sharding = "{manual}"} : (tensor<4xf32>) -> tensor<4xf32>
  %5 = stablehlo.custom_call @SPMDShardToFullShape(%4) {backend_config = "", mhlo.sharding = "{devices=[2]<=[2]}"} : (tensor<4xf32>) -> tensor<8xf32>
  %6 = stablehlo.sine %5 : tensor<8xf32>
  return %6 : tensor<8xf32>
}
func.func private @shmap_body(%x: tensor<4xf32>) -> tensor<4xf32> {
  %0 = stablehlo.negate %x : tensor<4xf32>
  return %0 : tensor<4xf32>
}
