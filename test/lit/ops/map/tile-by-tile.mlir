// A function of each element alone: each device maps its tile, and uneven tiles need no mask.
// RUN: shardpass-opt %s partition | FileCheck %s
// RUN: shardpass-run %s partition --devices 4 --check

// 10 rows over 4 devices are ceil(10 / 4) = 3.
// CHECK-LABEL: func.func @main(
// CHECK-NEXT: "stablehlo.map"(%arg0, %arg1)
// CHECK: (tensor<3x4xf32>, tensor<3x4xf32>) -> tensor<3x4xf32>
// CHECK-NEXT: return
module attributes {mhlo.num_partitions = 4 : i32} {
  func.func @main(%x: tensor<10x4xf32> {mhlo.sharding = "{devices=[4,1]<=[4]}"},
      %y: tensor<10x4xf32> {mhlo.sharding = "{devices=[4,1]<=[4]}"})
      -> (tensor<10x4xf32> {mhlo.sharding = "{devices=[4,1]<=[4]}"}) {
    %0 = "stablehlo.map"(%x, %y) <{dimensions = array<i64: 0, 1>}> ({
      ^bb0(%a: tensor<f32>, %b: tensor<f32>):
        %1 = stablehlo.multiply %a, %b : tensor<f32>
        %2 = stablehlo.add %1, %a : tensor<f32>
        stablehlo.return %2 : tensor<f32>
    }) : (tensor<10x4xf32>, tensor<10x4xf32>) -> tensor<10x4xf32>
    return %0 : tensor<10x4xf32>
  }
}
