// case 1: an initial value that is not the combiner's identity counts once: one device takes it, the others take
// nothing.
// RUN: shardpass-opt %s 'shardpass-import,shardpass-propagate,shardpass-partition' | FileCheck %s
// RUN: shardpass-run %s partition --devices 2 --check

// CHECK-LABEL: func.func @main(
// CHECK-DAG: %[[ONE:.*]] = stablehlo.constant dense<1.000000e+00> : tensor<f32>
// CHECK-DAG: %[[NOTHING:.*]] = stablehlo.constant dense<{{-?}}0.000000e+00> : tensor<f32>
// CHECK-DAG: %[[FIRST:.*]] = stablehlo.compare EQ, %{{.*}}, %{{.*}}, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
// CHECK: stablehlo.select %[[FIRST]], %[[ONE]], %[[NOTHING]]
// CHECK: stablehlo.reduce({{.*}}) applies stablehlo.add across dimensions = [1] : (tensor<4x2048xf32>, tensor<f32>) -> tensor<4xf32>
// CHECK: "stablehlo.all_reduce"
func.func @main(%x: tensor<4x4096xf32> {mhlo.sharding = "{devices=[1,2]<=[2]}"}) -> (tensor<4xf32> {mhlo.sharding = "{replicated}"}) {
  %one = stablehlo.constant dense<1.0> : tensor<f32>
  %0 = stablehlo.reduce(%x init: %one) applies stablehlo.add across dimensions = [1] : (tensor<4x4096xf32>, tensor<f32>) -> tensor<4xf32>
  return %0 : tensor<4xf32>
}
