// Inner values may be split unevenly; an argument or result that says nothing takes only what divides it.
// RUN: shardpass-opt %s "propagate{effort=0}" | FileCheck %s

// CHECK-LABEL: func.func @main(
// CHECK-SAME: tensor<7x4xf32> {mhlo.sharding = "{replicated}"})
// CHECK-SAME: -> (tensor<7x4xf32> {mhlo.sharding = "{replicated}"})
// CHECK: stablehlo.negate %{{.*}} {mhlo.sharding = "{devices=[2,1]<=[2]}", shardpass.pinned}
// CHECK: stablehlo.abs %{{.*}} {mhlo.sharding = "{devices=[2,1]<=[2]}"}
func.func @main(%x: tensor<7x4xf32>) -> tensor<7x4xf32> {
  %0 = stablehlo.negate %x {mhlo.sharding = "{devices=[2,1]<=[2]}"} : tensor<7x4xf32>
  %1 = stablehlo.abs %0 : tensor<7x4xf32>
  return %1 : tensor<7x4xf32>
}
