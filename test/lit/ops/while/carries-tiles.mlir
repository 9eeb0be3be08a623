// A loop carries tiles: what enters split stays split through every iteration, and the one collective that an iteration
// needs stands in the body. Nothing moves at the loop's borders.
// RUN: shardpass-opt %s partition | FileCheck %s
// RUN: shardpass-run %s partition --devices 4 --check

// CHECK-LABEL: func.func @main(%arg0: tensor<8x128xf32>
// CHECK-NOT: channel_handle
// CHECK: stablehlo.while({{.*}}%arg0) : tensor<i32>, tensor<8x128xf32>
// CHECK: do {
// CHECK: %[[PART:.*]] = stablehlo.dot_general {{.*}} : (tensor<8x128xf32>, tensor<128x512xf32>) -> tensor<8x512xf32>
// CHECK: "stablehlo.reduce_scatter"(%[[PART]])
// CHECK-SAME: scatter_dimension = 1
// CHECK: (tensor<8x512xf32>) -> tensor<8x128xf32>
// CHECK-NOT: channel_handle
module attributes {mhlo.num_partitions = 4 : i32} {
  func.func @main(%x: tensor<8x512xf32> {mhlo.sharding = "{devices=[1,4]<=[4]}"},
      %w: tensor<512x512xf32> {mhlo.sharding = "{devices=[4,1]<=[4]}"})
      -> (tensor<8x512xf32> {mhlo.sharding = "{devices=[1,4]<=[4]}"}) {
    %zero = stablehlo.constant dense<0> : tensor<i32>
    %0:2 = stablehlo.while(%i = %zero, %v = %x) : tensor<i32>, tensor<8x512xf32>
     cond {
      %three = stablehlo.constant dense<3> : tensor<i32>
      %1 = stablehlo.compare LT, %i, %three : (tensor<i32>, tensor<i32>) -> tensor<i1>
      stablehlo.return %1 : tensor<i1>
    } do {
      %one = stablehlo.constant dense<1> : tensor<i32>
      %1 = stablehlo.add %i, %one : tensor<i32>
      %2 = stablehlo.dot_general %v, %w, contracting_dims = [1] x [0]
        : (tensor<8x512xf32>, tensor<512x512xf32>) -> tensor<8x512xf32>
      %3 = stablehlo.negate %2 : tensor<8x512xf32>
      stablehlo.return %1, %3 : tensor<i32>, tensor<8x512xf32>
    }
    return %0#1 : tensor<8x512xf32>
  }
}
