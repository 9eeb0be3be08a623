// One value wanted twice in the same other sharding is moved once.
// RUN: shardpass-opt %s 'shardpass-import,shardpass-propagate,shardpass-partition' | FileCheck %s

// CHECK-LABEL: func.func @main(
// CHECK: %[[MOVED:.*]] = stablehlo.custom_call @shardpass.redistribute
// CHECK-NOT: shardpass.redistribute
// CHECK: stablehlo.negate %[[MOVED]] : tensor<8x4xf32>
// CHECK-NOT: shardpass.redistribute
// CHECK: stablehlo.abs %[[MOVED]] : tensor<8x4xf32>
// CHECK-NOT: shardpass.redistribute
func.func @main(%x: tensor<8x8xf32> {mhlo.sharding = "{devices=[2,1]<=[2]}"})
    -> (tensor<8x8xf32> {mhlo.sharding = "{devices=[1,2]<=[2]}"}, tensor<8x8xf32> {mhlo.sharding = "{devices=[1,2]<=[2]}"}) {
  %0 = stablehlo.custom_call @Sharding(%x) {mhlo.sharding = "{devices=[1,2]<=[2]}"} : (tensor<8x8xf32>) -> tensor<8x8xf32>
  %1 = stablehlo.custom_call @Sharding(%x) {mhlo.sharding = "{devices=[1,2]<=[2]}"} : (tensor<8x8xf32>) -> tensor<8x8xf32>
  %2 = stablehlo.negate %0 : tensor<8x8xf32>
  %3 = stablehlo.abs %1 : tensor<8x8xf32>
  return %2, %3 : tensor<8x8xf32>, tensor<8x8xf32>
}
