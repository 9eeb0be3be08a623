// An op of old is written as the one that took its place: a split contraction leaves partial sums.
// RUN: shardpass-opt %s "partition{effort=0}" | FileCheck %s

// CHECK-LABEL: func.func @main(
// CHECK-NEXT: %[[PART:.*]] = stablehlo.dot_general %arg0, %arg1, contracting_dims = [1] x [0]
// CHECK-SAME: (tensor<8x16xf32>, tensor<16xf32>) -> tensor<8xf32>
// CHECK-NEXT: "stablehlo.all_reduce"(%[[PART]])
module attributes {mhlo.num_partitions = 4 : i32} {
  func.func @main(%x: tensor<8x64xf32> {mhlo.sharding = "{devices=[1,4]<=[4]}"},
      %y: tensor<64xf32> {mhlo.sharding = "{devices=[4]<=[4]}"}) -> tensor<8xf32> {
    %0 = "stablehlo.dot"(%x, %y) : (tensor<8x64xf32>, tensor<64xf32>) -> tensor<8xf32>
    return %0 : tensor<8xf32>
  }
}
