// A sharding in the middle reaches everything before it and after it.
// RUN: shardpass-opt %s propagate | FileCheck %s

// CHECK-LABEL: func.func @main(
// CHECK-SAME: %{{.*}}: tensor<8x4xf32> {mhlo.sharding = "{devices=[2,1]<=[2]}"})
// CHECK-SAME: -> (tensor<8x4xf32> {mhlo.sharding = "{devices=[2,1]<=[2]}"})
// CHECK: stablehlo.negate %{{.*}} {mhlo.sharding = "{devices=[2,1]<=[2]}"}
// CHECK: stablehlo.custom_call @Sharding
// CHECK-SAME: mhlo.sharding = "{devices=[2,1]<=[2]}"
// CHECK: stablehlo.abs %{{.*}} {mhlo.sharding = "{devices=[2,1]<=[2]}"}
func.func @main(%x: tensor<8x4xf32>) -> tensor<8x4xf32> {
  %0 = stablehlo.negate %x : tensor<8x4xf32>
  %1 = stablehlo.custom_call @Sharding(%0) {mhlo.sharding = "{devices=[2,1]<=[2]}"} : (tensor<8x4xf32>) -> tensor<8x4xf32>
  %2 = stablehlo.abs %1 : tensor<8x4xf32>
  return %2 : tensor<8x4xf32>
}
