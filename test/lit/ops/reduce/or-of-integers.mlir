// case 2: there is no all_reduce of the bits of integers. Parts are gathered within each row of the mesh, and reduced
// once more. The mesh is 2x2: rows are split over the major axis, and only the minor one communicates.
// RUN: shardpass-opt %s partition | FileCheck %s
// RUN: shardpass-run %s partition --devices 4 --check

// CHECK-LABEL: func.func @main(%arg0: tensor<5x3xi32>
// CHECK: "stablehlo.all_gather"
// CHECK-SAME{LITERAL}: replica_groups = dense<[[0, 1], [2, 3]]>
// CHECK-SAME: shardpass.cause = "parts of stablehlo.reduce over a split dimension"
// CHECK-SAME: (tensor<1x5xi32>) -> tensor<2x5xi32>
// CHECK: stablehlo.reduce({{.*}}) applies stablehlo.or across dimensions = [0] : (tensor<2x5xi32>, tensor<i32>) -> tensor<5xi32>
// CHECK-NOT: channel_handle
module attributes {mhlo.num_partitions = 4 : i32} {
  func.func @main(%x: tensor<10x6xi32> {mhlo.sharding = "{devices=[2,2]<=[4]}"}) -> tensor<10xi32> {
    %zero = stablehlo.constant dense<0> : tensor<i32>
    %0 = stablehlo.reduce(%x init: %zero) applies stablehlo.or across dimensions = [1]
      : (tensor<10x6xi32>, tensor<i32>) -> tensor<10xi32>
    return %0 : tensor<10xi32>
  }
}
