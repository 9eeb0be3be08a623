// The best 3 of a split dimension: 3 candidates from each of 4 devices are gathered, not 1000 elements.
// RUN: shardpass-opt %s partition | FileCheck %s
// RUN: shardpass-run %s partition --devices 4 --check

module attributes {mhlo.num_partitions = 4 : i32} {
  // CHECK-LABEL: func.func public @main
  // CHECK: chlo.top_k(%arg0, k = 3) : tensor<2x250xf32> -> (tensor<2x3xf32>, tensor<2x3xi32>)
  // CHECK: (tensor<1x12xui32>) -> tensor<4x12xui32>
  // CHECK: chlo.top_k(%{{.*}}, k = 3) : tensor<2x12xf32> -> (tensor<2x3xf32>, tensor<2x3xi32>)
  // CHECK: "stablehlo.gather"
  // CHECK-NOT: all_gather
  func.func public @main(%x: tensor<2x1000xf32> {mhlo.sharding = "{devices=[1,4]<=[4]}"})
      -> (tensor<2x3xf32>, tensor<2x3xi32>) {
    %values, %places = chlo.top_k(%x, k = 3) : tensor<2x1000xf32> -> (tensor<2x3xf32>, tensor<2x3xi32>)
    return %values, %places : tensor<2x3xf32>, tensor<2x3xi32>
  }
}
