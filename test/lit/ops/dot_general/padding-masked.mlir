// What lies in the padding of an uneven tile is arbitrary: before a contraction it becomes zero, in both operands, as
// zero times NaN is NaN.
// RUN: shardpass-opt %s partition | FileCheck %s
// RUN: shardpass-run %s partition --devices 2 --check

// 4095 over 2 devices is 2048, with 1 of padding in both operands.
// CHECK-LABEL: func.func @main(
// CHECK-SAME: %[[X:[^:]*]]: tensor<4x2048xf32>
// CHECK: stablehlo.compare LT
// CHECK: %[[MASKED:.*]] = stablehlo.select %{{.*}}, %[[X]], %{{.*}} : tensor<4x2048xi1>, tensor<4x2048xf32>
// CHECK: stablehlo.select %{{.*}} : tensor<2048x4xi1>, tensor<2048x4xf32>
// CHECK: stablehlo.dot_general %[[MASKED]], %{{.*}}
// CHECK: "stablehlo.all_reduce"
module attributes {mhlo.num_partitions = 2 : i32} {
  func.func @main(%x: tensor<4x4095xf32> {mhlo.sharding = "{devices=[1,2]<=[2]}"},
      %y: tensor<4095x4xf32> {mhlo.sharding = "{devices=[2,1]<=[2]}"}) -> (tensor<4x4xf32> {mhlo.sharding = "{replicated}"}) {
    %0 = stablehlo.dot_general %x, %y, contracting_dims = [1] x [0]
      : (tensor<4x4095xf32>, tensor<4095x4xf32>) -> tensor<4x4xf32>
    return %0 : tensor<4x4xf32>
  }
}
