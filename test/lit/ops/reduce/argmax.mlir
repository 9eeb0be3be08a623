// case 2: argmax over a split dimension: parts are reduced, gathered (2 values and 2 places each, as bits), and reduced
// again.
// RUN: shardpass-opt %s partition | FileCheck %s
// RUN: shardpass-run %s partition --devices 4 --check

module attributes {mhlo.num_partitions = 4 : i32} {
  // CHECK-LABEL: func.func public @main
  // CHECK: stablehlo.reduce({{.*}}) across dimensions = [1] : (tensor<2x250xf32>, tensor<2x250xi32>, tensor<2x250xi1>
  // CHECK: "stablehlo.all_gather"
  // CHECK-SAME: shardpass.cause = "parts of stablehlo.reduce over a split dimension"
  // CHECK-SAME: (tensor<1x4xui32>) -> tensor<4x4xui32>
  // CHECK: stablehlo.reduce({{.*}}) across dimensions = [0] : (tensor<4x2xf32>, tensor<4x2xi32>, tensor<f32>
  // CHECK-NOT: all_gather
  func.func public @main(%x: tensor<2x1000xf32> {mhlo.sharding = "{devices=[1,4]<=[4]}"}) -> tensor<2xi32> {
    %places = stablehlo.iota dim = 1 : tensor<2x1000xi32>
    %least = stablehlo.constant dense<0xFF800000> : tensor<f32>
    %zero = stablehlo.constant dense<0> : tensor<i32>
    %0:2 = stablehlo.reduce(%x init: %least), (%places init: %zero) across dimensions = [1]
      : (tensor<2x1000xf32>, tensor<2x1000xi32>, tensor<f32>, tensor<i32>) -> (tensor<2xf32>, tensor<2xi32>)
      reducer(%a: tensor<f32>, %b: tensor<f32>) (%i: tensor<i32>, %j: tensor<i32>) {
        %1 = stablehlo.compare GE, %a, %b : (tensor<f32>, tensor<f32>) -> tensor<i1>
        %2 = stablehlo.select %1, %a, %b : tensor<i1>, tensor<f32>
        %3 = stablehlo.select %1, %i, %j : tensor<i1>, tensor<i32>
        stablehlo.return %2, %3 : tensor<f32>, tensor<i32>
      }
    return %0#1 : tensor<2xi32>
  }
}
