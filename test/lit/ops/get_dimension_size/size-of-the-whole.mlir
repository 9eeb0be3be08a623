// The size is that of the whole array, 10, and not of a tile of 3.
// RUN: shardpass-opt %s partition | FileCheck %s
// RUN: shardpass-run %s partition --devices 4 --check

// CHECK-LABEL: func.func @main(%arg0: tensor<3x8xf32>
// CHECK-NEXT: %[[SIZE:.*]] = stablehlo.constant dense<10> : tensor<i32>
// CHECK-NEXT: return %[[SIZE]]
module attributes {mhlo.num_partitions = 4 : i32} {
  func.func @main(%x: tensor<10x8xf32> {mhlo.sharding = "{devices=[4,1]<=[4]}"}) -> tensor<i32> {
    %0 = stablehlo.get_dimension_size %x, dim = 0 : (tensor<10x8xf32>) -> tensor<i32>
    return %0 : tensor<i32>
  }
}
