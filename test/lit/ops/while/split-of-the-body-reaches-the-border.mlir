// The body wants rows, argument and result are split over columns. What the loop carries is split as the body wants it:
// one all_to_all before the loop and one behind it, and none in each of its iterations.
// RUN: shardpass-opt %s 'partition{effort=0}' | FileCheck %s
// RUN: shardpass-run %s partition --devices 4 --check

// CHECK-LABEL: func.func @main(%arg0: tensor<8x4xf32>
// CHECK: "stablehlo.all_to_all"
// CHECK: stablehlo.while(
// CHECK-SAME: tensor<2x16xf32>
// CHECK-NOT: channel_handle
// CHECK: stablehlo.sine %{{.*}} : tensor<2x16xf32>
// CHECK-NOT: channel_handle
// CHECK: stablehlo.return
// CHECK: "stablehlo.all_to_all"
// CHECK: shardpass.cause = "result 0 of the program"
// CHECK-NOT: channel_handle
module attributes {mhlo.num_partitions = 4 : i32} {
  func.func @main(%x: tensor<8x16xf32> {mhlo.sharding = "{devices=[1,4]<=[4]}"})
      -> (tensor<8x16xf32> {mhlo.sharding = "{devices=[1,4]<=[4]}"}) {
    %zero = stablehlo.constant dense<0> : tensor<i32>
    %0:2 = stablehlo.while(%i = %zero, %v = %x) : tensor<i32>, tensor<8x16xf32>
     cond {
      %three = stablehlo.constant dense<3> : tensor<i32>
      %1 = stablehlo.compare LT, %i, %three : (tensor<i32>, tensor<i32>) -> tensor<i1>
      stablehlo.return %1 : tensor<i1>
    } do {
      %one = stablehlo.constant dense<1> : tensor<i32>
      %1 = stablehlo.add %i, %one : tensor<i32>
      %2 = stablehlo.custom_call @Sharding(%v) {mhlo.sharding = "{devices=[4,1]<=[4]}"} : (tensor<8x16xf32>) -> tensor<8x16xf32>
      %3 = stablehlo.sine %2 : tensor<8x16xf32>
      stablehlo.return %1, %3 : tensor<i32>, tensor<8x16xf32>
    }
    return %0#1 : tensor<8x16xf32>
  }
}
