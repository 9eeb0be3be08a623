// A slice that begins one row later: each device gets the first row of its right neighbour, and nothing else moves.
// RUN: shardpass-opt %s partition | FileCheck %s
// RUN: shardpass-run %s partition --devices 4 --check
// RUN: shardpass-explain %s | FileCheck %s --check-prefix=WHY

// CHECK-LABEL: func.func @main(
// CHECK-SAME: %[[X:[^:]*]]: tensor<2x16xf32>
// CHECK: %[[ROW:.*]] = stablehlo.slice %[[X]] [0:1, 0:16]
// CHECK: %[[NEXT:.*]] = "stablehlo.collective_permute"(%[[ROW]])
// CHECK-SAME{LITERAL}: source_target_pairs = dense<[[1, 0], [2, 1], [3, 2]]>
// CHECK: %[[OWN:.*]] = stablehlo.slice %[[X]] [1:2, 0:16]
// CHECK: stablehlo.concatenate %[[OWN]], %[[NEXT]], dim = 0 : (tensor<1x16xf32>, tensor<1x16xf32>) -> tensor<2x16xf32>
// CHECK-NOT: all_gather
// WHY: each device receives 64 B
// WHY: a slice across tiles
module attributes {mhlo.num_partitions = 4 : i32} {
  func.func @main(%x: tensor<8x16xf32> {mhlo.sharding = "{devices=[4,1]<=[4]}"})
      -> (tensor<7x16xf32> {mhlo.sharding = "{devices=[4,1]<=[4]}"}) {
    %0 = stablehlo.slice %x [1:8, 0:16] : (tensor<8x16xf32>) -> tensor<7x16xf32>
    return %0 : tensor<7x16xf32>
  }
}
