// 1001 elements over 4 devices are tiles of 251, the last with 248 elements and 3 of padding. Padding becomes the least
// element there is (all bits set, a negative NaN) before each device keeps its best 3.
// RUN: shardpass-opt %s partition | FileCheck %s
// RUN: shardpass-run %s partition --devices 4 --check

// CHECK-LABEL: func.func @main(%arg0: tensor<2x251xf32>
// CHECK: dense<0xFFFFFFFF>
// CHECK: %[[REAL:.*]] = stablehlo.select %{{.*}}, %arg0, %{{.*}} : tensor<2x251xi1>, tensor<2x251xf32>
// CHECK: chlo.top_k(%[[REAL]], k = 3) : tensor<2x251xf32> -> (tensor<2x3xf32>, tensor<2x3xi32>)
// CHECK: "stablehlo.all_gather"
// CHECK-SAME: -> tensor<4x12xui32>
module attributes {mhlo.num_partitions = 4 : i32} {
  func.func @main(%x: tensor<2x1001xf32> {mhlo.sharding = "{devices=[1,4]<=[4]}"}) -> (tensor<2x3xf32>, tensor<2x3xi32>) {
    %values, %places = chlo.top_k(%x, k = 3) : tensor<2x1001xf32> -> (tensor<2x3xf32>, tensor<2x3xi32>)
    return %values, %places : tensor<2x3xf32>, tensor<2x3xi32>
  }
}
