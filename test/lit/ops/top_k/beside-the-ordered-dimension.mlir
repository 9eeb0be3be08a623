// The best of each row, with rows split: each device looks at its own rows, and nothing moves.
// RUN: shardpass-opt %s partition | FileCheck %s
// RUN: shardpass-run %s partition --devices 4 --check

// CHECK-LABEL: func.func @main(
// CHECK-NEXT: chlo.top_k(%arg0, k = 3) : tensor<2x6xf32> -> (tensor<2x3xf32>, tensor<2x3xi32>)
// CHECK-NEXT: return
module attributes {mhlo.num_partitions = 4 : i32} {
  func.func @main(%x: tensor<8x6xf32> {mhlo.sharding = "{devices=[4,1]<=[4]}"}) -> (tensor<8x3xf32>, tensor<8x3xi32>) {
    %values, %places = chlo.top_k(%x, k = 3) : tensor<8x6xf32> -> (tensor<8x3xf32>, tensor<8x3xi32>)
    return %values, %places : tensor<8x3xf32>, tensor<8x3xi32>
  }
}
