// Rows are sorted one by one: each device sorts its own, two operands together, and uneven tiles need no mask.
// RUN: shardpass-opt %s partition | FileCheck %s
// RUN: shardpass-run %s partition --devices 4 --check

// 10 rows over 4 devices are ceil(10 / 4) = 3.
// CHECK-LABEL: func.func @main(
// CHECK-NEXT: "stablehlo.sort"(%arg0, %arg1)
// CHECK: (tensor<3x6xf32>, tensor<3x6xi32>) -> (tensor<3x6xf32>, tensor<3x6xi32>)
// CHECK-NEXT: return
module attributes {mhlo.num_partitions = 4 : i32} {
  func.func @main(%x: tensor<10x6xf32> {mhlo.sharding = "{devices=[4,1]<=[4]}"},
      %v: tensor<10x6xi32> {mhlo.sharding = "{devices=[4,1]<=[4]}"})
      -> (tensor<10x6xi32> {mhlo.sharding = "{devices=[4,1]<=[4]}"}) {
    %0:2 = "stablehlo.sort"(%x, %v) <{dimension = 1 : i64, is_stable = true}> ({
      ^bb0(%a: tensor<f32>, %b: tensor<f32>, %c: tensor<i32>, %d: tensor<i32>):
        %1 = stablehlo.compare LT, %a, %b, TOTALORDER : (tensor<f32>, tensor<f32>) -> tensor<i1>
        stablehlo.return %1 : tensor<i1>
    }) : (tensor<10x6xf32>, tensor<10x6xi32>) -> (tensor<10x6xf32>, tensor<10x6xi32>)
    return %0#1 : tensor<10x6xi32>
  }
}
