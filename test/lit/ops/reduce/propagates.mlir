// A reduction hands on the split of the dimensions that stay; nothing of the reduced one's is left in the result.
// RUN: shardpass-opt %s "propagate{effort=0}" | FileCheck %s

// CHECK-LABEL: func.func @main(
// CHECK: stablehlo.reduce({{.*}}) applies stablehlo.add across dimensions = [1]
// CHECK-SAME: {mhlo.sharding = "{devices=[2,2]<=[4] last_tile_dim_replicate}"}
func.func @main(%x: tensor<8x4xf32> {mhlo.sharding = "{devices=[2,2]<=[4]}"}) -> tensor<8xf32> {
  %zero = stablehlo.constant dense<0.0> : tensor<f32>
  %0 = stablehlo.reduce(%x init: %zero) applies stablehlo.add across dimensions = [1] : (tensor<8x4xf32>, tensor<f32>) -> tensor<8xf32>
  return %0 : tensor<8xf32>
}
