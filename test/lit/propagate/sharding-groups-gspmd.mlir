// `shard_as` in the sharding's text, on constraints that say nothing else: both values get the one that is known.
// RUN: shardpass-opt %s propagate | FileCheck %s

// CHECK-LABEL: func.func @main
// CHECK-SAME: %arg1: tensor<8xf32> {mhlo.sharding = "{devices=[2]<=[2]}"}
func.func @main(%a: tensor<8xf32> {mhlo.sharding = "{devices=[2]<=[2]}"}, %b: tensor<8xf32>) -> (tensor<8xf32>, tensor<8xf32>) {
  %0 = stablehlo.custom_call @Sharding(%a) {mhlo.sharding = "{unknown shard_as 1}"} : (tensor<8xf32>) -> tensor<8xf32>
  %1 = stablehlo.custom_call @Sharding(%b) {mhlo.sharding = "{unknown shard_as 1}"} : (tensor<8xf32>) -> tensor<8xf32>
  return %0, %1 : tensor<8xf32>, tensor<8xf32>
}
