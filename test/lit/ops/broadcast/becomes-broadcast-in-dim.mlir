// An op of old is written as the one that took its place, and is split as that one.
// RUN: shardpass-opt %s partition | FileCheck %s

// CHECK-LABEL: func.func @main(
// CHECK-NEXT: stablehlo.broadcast_in_dim %arg0, dims = [1] : (tensor<2xf32>) -> tensor<3x2xf32>
// CHECK-NEXT: return
module attributes {mhlo.num_partitions = 4 : i32} {
  func.func @main(%x: tensor<8xf32> {mhlo.sharding = "{devices=[4]<=[4]}"})
      -> (tensor<3x8xf32> {mhlo.sharding = "{devices=[1,4]<=[4]}"}) {
    %0 = "stablehlo.broadcast"(%x) <{broadcast_sizes = array<i64: 3>}> : (tensor<8xf32>) -> tensor<3x8xf32>
    return %0 : tensor<3x8xf32>
  }
}
