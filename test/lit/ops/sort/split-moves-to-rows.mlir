// A sort along a split dimension: the split moves to the rows and back, by an all_to_all each way.
// RUN: shardpass-opt %s partition | FileCheck %s
// RUN: shardpass-run %s partition --devices 4 --check

module attributes {mhlo.num_partitions = 4 : i32} {
  // CHECK-LABEL: func.func public @main
  // CHECK: all_to_all
  // CHECK: "stablehlo.sort"
  // CHECK: (tensor<100x1000xf32>) -> tensor<100x1000xf32>
  // CHECK: all_to_all
  // CHECK-NOT: all_gather
  func.func public @main(%x: tensor<400x1000xf32> {mhlo.sharding = "{devices=[1,4]<=[4]}"})
      -> (tensor<400x1000xf32> {mhlo.sharding = "{devices=[1,4]<=[4]}"}) {
    %0 = "stablehlo.sort"(%x) <{dimension = 1 : i64, is_stable = true}> ({
      ^bb0(%a: tensor<f32>, %b: tensor<f32>):
        %1 = stablehlo.compare LT, %a, %b, TOTALORDER : (tensor<f32>, tensor<f32>) -> tensor<i1>
        stablehlo.return %1 : tensor<i1>
    }) : (tensor<400x1000xf32>) -> tensor<400x1000xf32>
    return %0 : tensor<400x1000xf32>
  }
}
