// A scan over time carries its weights unchanged. Gathered in the loop's body they are there when most is alive, so
// gathering them once before the loop costs no memory.
// RUN: shardpass-opt %s 'shardpass-import,shardpass-propagate{effort=0},shardpass-partition,shardpass-hoist' | FileCheck %s
// RUN: shardpass-run %s partition --devices 8 --check

// CHECK-LABEL: func.func public @main(
// CHECK: %[[WHOLE:.*]] = stablehlo.custom_call @shardpass.redistribute(%arg0)
// CHECK-SAME: -> tensor<64x64xf32>
// CHECK: stablehlo.while
// CHECK: } do {
// CHECK: stablehlo.dot_general %{{.*}}, %[[WHOLE]],
// CHECK-NOT: shardpass.redistribute
module @jit_f attributes {mhlo.num_partitions = 8 : i32, mhlo.num_replicas = 1 : i32} {
  func.func public @main(%weights: tensor<64x64xf32> {mhlo.sharding = "{devices=[8,1]<=[8]}"},
                         %x: tensor<64x64xf32> {mhlo.sharding = "{devices=[8,1]<=[8]}"})
      -> (tensor<64x64xf32> {mhlo.sharding = "{devices=[8,1]<=[8]}"}) {
    %zero = stablehlo.constant dense<0> : tensor<i32>
    %0:3 = stablehlo.while(%w = %weights, %i = %zero, %h = %x) : tensor<64x64xf32>, tensor<i32>, tensor<64x64xf32>
    cond {
      %five = stablehlo.constant dense<5> : tensor<i32>
      %1 = stablehlo.compare LT, %i, %five, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
      stablehlo.return %1 : tensor<i1>
    } do {
      %1 = stablehlo.dot_general %h, %w, contracting_dims = [1] x [0] : (tensor<64x64xf32>, tensor<64x64xf32>) -> tensor<64x64xf32>
      %2 = stablehlo.tanh %1 : tensor<64x64xf32>
      %one = stablehlo.constant dense<1> : tensor<i32>
      %3 = stablehlo.add %i, %one : tensor<i32>
      stablehlo.return %w, %3, %2 : tensor<64x64xf32>, tensor<i32>, tensor<64x64xf32>
    }
    return %0#2 : tensor<64x64xf32>
  }
}
