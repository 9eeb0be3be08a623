// An array without rows, or of which no element is wanted, has a top_k without elements.
// RUN: shardpass-run %s partition --devices 2 --check
// RUN: shardpass-opt %s partition | FileCheck %s
// CHECK-LABEL: @main
// CHECK-NOT: stablehlo.gather
// CHECK: return
module attributes {mhlo.num_partitions = 2 : i32} {
  func.func @main(%x: tensor<0x4xf32> {mhlo.sharding = "{devices=[1,2]<=[2]}"}, %y: tensor<6x4xf32> {mhlo.sharding = "{devices=[1,2]<=[2]}"},
                  %z: tensor<3x0xf32> {mhlo.sharding = "{devices=[2,1]<=[2]}"})
      -> (tensor<0x2xf32>, tensor<0x2xi32>, tensor<6x0xf32>, tensor<6x0xi32>, tensor<3x0xf32>, tensor<3x0xi32>) {
    %0:2 = chlo.top_k(%x, k = 2) : tensor<0x4xf32> -> (tensor<0x2xf32>, tensor<0x2xi32>)
    %1:2 = chlo.top_k(%y, k = 0) : tensor<6x4xf32> -> (tensor<6x0xf32>, tensor<6x0xi32>)
    %2:2 = chlo.top_k(%z, k = 0) : tensor<3x0xf32> -> (tensor<3x0xf32>, tensor<3x0xi32>)
    return %0#0, %0#1, %1#0, %1#1, %2#0, %2#1 : tensor<0x2xf32>, tensor<0x2xi32>, tensor<6x0xf32>, tensor<6x0xi32>, tensor<3x0xf32>, tensor<3x0xi32>
  }
}
