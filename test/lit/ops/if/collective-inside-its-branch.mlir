// The branch that sums a split dimension communicates; the other one does not. The predicate is the same on every
// device, so all of them meet at the collective or none does.
// RUN: shardpass-opt %s "partition{effort=0}" | FileCheck %s
// RUN: shardpass-run %s "partition{effort=0}" --devices 4 --check

// CHECK-LABEL: func.func @main(%arg0: tensor<i1> {{.*}}, %arg1: tensor<8x128xf32>
// CHECK-NOT: channel_handle
// CHECK: "stablehlo.if"(%arg0) ({
// CHECK: %[[PART:.*]] = stablehlo.reduce(%arg1 {{.*}} : (tensor<8x128xf32>, tensor<f32>) -> tensor<8xf32>
// CHECK: "stablehlo.all_reduce"(%[[PART]])
// CHECK: }, {
// CHECK-NOT: channel_handle
module attributes {mhlo.num_partitions = 4 : i32} {
  func.func @main(%p: tensor<i1>, %x: tensor<8x512xf32> {mhlo.sharding = "{devices=[1,4]<=[4]}"}) -> tensor<8xf32> {
    %0 = "stablehlo.if"(%p) ({
      %zero = stablehlo.constant dense<0.0> : tensor<f32>
      %1 = stablehlo.reduce(%x init: %zero) applies stablehlo.add across dimensions = [1]
        : (tensor<8x512xf32>, tensor<f32>) -> tensor<8xf32>
      stablehlo.return %1 : tensor<8xf32>
    }, {
      %1 = stablehlo.constant dense<1.0> : tensor<8xf32>
      stablehlo.return %1 : tensor<8xf32>
    }) : (tensor<i1>) -> tensor<8xf32>
    return %0 : tensor<8xf32>
  }
}
