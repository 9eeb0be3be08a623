// A constant that a region and the rest of the program share is copied: one is manual, one is not.
// RUN: shardpass-opt %s import | FileCheck %s

// CHECK-LABEL: func.func @main
// CHECK-DAG: %[[OUTSIDE:[^ ]*]] = stablehlo.constant dense<2.000000e+00> : tensor<4xf32>
// CHECK-DAG: %[[INSIDE:[^ ]*]] = stablehlo.constant {mhlo.sharding = "{manual}"} dense<2.000000e+00> : tensor<4xf32>
// CHECK: stablehlo.multiply %{{.*}}, %[[INSIDE]] {mhlo.sharding = "{manual}"} : tensor<4xf32>
// CHECK: stablehlo.add %{{.*}}, %[[OUTSIDE]] : tensor<4xf32>
func.func @main(%x: tensor<8xf32> {mhlo.sharding = "{devices=[2]<=[2]}"}, %y: tensor<4xf32>) -> (tensor<8xf32>, tensor<4xf32>) {
  %two = stablehlo.constant dense<2.0> : tensor<4xf32>
  %0 = stablehlo.custom_call @Sharding(%x) {mhlo.sharding = "{devices=[2]<=[2]}"} : (tensor<8xf32>) -> tensor<8xf32>
  %1 = stablehlo.custom_call @SPMDFullToShardShape(%0) {mhlo.sharding = "{manual}"} : (tensor<8xf32>) -> tensor<4xf32>
  %2 = stablehlo.multiply %1, %two : tensor<4xf32>
  %3 = stablehlo.custom_call @Sharding(%2) {mhlo.sharding = "{manual}"} : (tensor<4xf32>) -> tensor<4xf32>
  %4 = stablehlo.custom_call @SPMDShardToFullShape(%3) {mhlo.sharding = "{devices=[2]<=[2]}"} : (tensor<4xf32>) -> tensor<8xf32>
  %5 = stablehlo.add %y, %two : tensor<4xf32>
  return %4, %5 : tensor<8xf32>, tensor<4xf32>
}
