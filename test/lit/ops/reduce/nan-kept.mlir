// With nan=exact a maximum across devices compares integers that are in the order of the floats; NaN is the greatest.
// RUN: shardpass-opt %s 'partition{nan=exact}' | FileCheck %s
// RUN: shardpass-run %s 'partition{nan=exact}' --devices 2 --check

// CHECK-LABEL: func.func @main(
// CHECK: %[[PART:.*]] = stablehlo.reduce({{.*}}) applies stablehlo.maximum across dimensions = [1] : (tensor<4x2048xf32>, tensor<f32>) -> tensor<4xf32>
// CHECK: %[[NAN:.*]] = stablehlo.compare NE, %[[PART]], %[[PART]]
// CHECK: stablehlo.bitcast_convert %[[PART]] : (tensor<4xf32>) -> tensor<4xi32>
// CHECK: stablehlo.constant dense<2143289344>
// CHECK: %[[KEY:.*]] = stablehlo.select %[[NAN]],
// CHECK: "stablehlo.all_reduce"(%[[KEY]])
// CHECK: stablehlo.maximum {{.*}} : tensor<i32>
// CHECK: shardpass.cause = "partial results of stablehlo.reduce"
// CHECK: stablehlo.bitcast_convert {{.*}} : (tensor<4xi32>) -> tensor<4xf32>
func.func @main(%x: tensor<4x4096xf32> {mhlo.sharding = "{devices=[1,2]<=[2]}"}) -> (tensor<4xf32> {mhlo.sharding = "{replicated}"}) {
  %low = stablehlo.constant dense<0xFF800000> : tensor<f32>
  %0 = stablehlo.reduce(%x init: %low) applies stablehlo.maximum across dimensions = [1] : (tensor<4x4096xf32>, tensor<f32>) -> tensor<4xf32>
  return %0 : tensor<4xf32>
}
