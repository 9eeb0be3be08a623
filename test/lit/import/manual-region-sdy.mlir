// A manual computation becomes the same form: conversions around the body, its ops marked.
// RUN: shardpass-opt %s import | FileCheck %s

// CHECK-NOT: sdy.
// CHECK-LABEL: func.func @main(
// CHECK-SAME: %[[X:[^:]*]]: tensor<8x4xf32>
// CHECK: %[[SAID:.*]] = stablehlo.custom_call @Sharding(%[[X]]) {mhlo.sharding = "{devices=[2,1]<=[2]}"}
// CHECK: %[[TILE:.*]] = stablehlo.custom_call @SPMDFullToShardShape(%[[SAID]]) {mhlo.sharding = "{manual}"} : (tensor<8x4xf32>) -> tensor<4x4xf32>
// CHECK: %[[NEG:.*]] = stablehlo.negate %[[TILE]] {mhlo.sharding = "{manual}"} : tensor<4x4xf32>
// CHECK: stablehlo.custom_call @SPMDShardToFullShape(%{{.*}}) {mhlo.sharding = "{devices=[1,2]<=[2]}"} : (tensor<4x4xf32>) -> tensor<4x8xf32>
// CHECK-NOT: sdy.
module {
  sdy.mesh @mesh = <["x"=2]>
  func.func @main(%x: tensor<8x4xf32>) -> tensor<4x8xf32> {
    %0 = sdy.manual_computation(%x) in_shardings=[<@mesh, [{"x"}, {}]>] out_shardings=[<@mesh, [{}, {"x"}]>] manual_axes={"x"} (%tile: tensor<4x4xf32>) {
      %1 = stablehlo.negate %tile : tensor<4x4xf32>
      sdy.return %1 : tensor<4x4xf32>
    } : (tensor<8x4xf32>) -> tensor<4x8xf32>
    return %0 : tensor<4x8xf32>
  }
}
