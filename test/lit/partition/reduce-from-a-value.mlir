// An initial value that is not the combiner's identity would be added once on each device: never split so.
// RUN: shardpass-opt %s partition | FileCheck %s

// CHECK-LABEL: func.func @main(
// CHECK-NOT: all_reduce
// The whole dimension on one device; the rows may be shared out.
// CHECK: stablehlo.reduce({{.*}}) applies stablehlo.add across dimensions = [1] : (tensor<{{[24]}}x4096xf32>, tensor<f32>)
// CHECK-NOT: all_reduce
func.func @main(%x: tensor<4x4096xf32> {mhlo.sharding = "{devices=[1,2]<=[2]}"}) -> (tensor<4xf32> {mhlo.sharding = "{replicated}"}) {
  %one = stablehlo.constant dense<1.0> : tensor<f32>
  %0 = stablehlo.reduce(%x init: %one) applies stablehlo.add across dimensions = [1] : (tensor<4x4096xf32>, tensor<f32>) -> tensor<4xf32>
  return %0 : tensor<4xf32>
}
