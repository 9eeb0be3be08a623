// A barrier holds values of any splits together: each keeps its own, and nothing moves.
// RUN: shardpass-opt %s partition | FileCheck %s
// RUN: shardpass-run %s partition --devices 4 --check

// CHECK-LABEL: func.func @main(
// CHECK-NEXT: stablehlo.optimization_barrier %arg0, %arg1 : tensor<3xf32>, tensor<6x2xf32>
// CHECK-NEXT: return
module attributes {mhlo.num_partitions = 4 : i32} {
  func.func @main(%x: tensor<10xf32> {mhlo.sharding = "{devices=[4]<=[4]}"},
      %y: tensor<6x8xf32> {mhlo.sharding = "{devices=[1,4]<=[4]}"})
      -> (tensor<10xf32> {mhlo.sharding = "{devices=[4]<=[4]}"}, tensor<6x8xf32>) {
    %0:2 = stablehlo.optimization_barrier %x, %y : tensor<10xf32>, tensor<6x8xf32>
    return %0#0, %0#1 : tensor<10xf32>, tensor<6x8xf32>
  }
}
