// What cannot be said of one result among several is said by a constraint on it.
// RUN: shardpass-opt %s import | FileCheck %s

// CHECK-LABEL: func.func @main(
// CHECK: %0:2 = stablehlo.optimization_barrier %arg0, %arg1 : tensor<8x4xf32>, tensor<4xf32>
// CHECK-DAG: stablehlo.custom_call @Sharding(%0#0) {mhlo.sharding = "{devices=[2,1]<=[2]}", shardpass.unspecified_dims = array<i64: 1>}
// CHECK-DAG: stablehlo.custom_call @Sharding(%0#1) {mhlo.sharding = "{replicated}"}
module {
  sdy.mesh @mesh = <["a"=2]>
  func.func @main(%x: tensor<8x4xf32>, %y: tensor<4xf32>) -> (tensor<8x4xf32>, tensor<4xf32>) {
    %0:2 = stablehlo.optimization_barrier {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"a"}, {?}]>, <@mesh, [{}]>]>}
        %x, %y : tensor<8x4xf32>, tensor<4xf32>
    return %0#0, %0#1 : tensor<8x4xf32>, tensor<4xf32>
  }
}
