// A condition that looks at split data is one number on every device: an all_reduce in the condition's region joins the
// maxima, so no device leaves the loop before another.
// RUN: shardpass-opt %s partition | FileCheck %s
// RUN: shardpass-run %s partition --devices 4 --check

// CHECK-LABEL: func.func @main(%arg0: tensor<2x4xf32>
// CHECK: stablehlo.while(
// CHECK: cond {
// CHECK: stablehlo.reduce({{.*}}) applies stablehlo.maximum across dimensions = [0, 1] : (tensor<2x4xf32>
// CHECK: %[[ALL:.*]] = "stablehlo.all_reduce"
// CHECK-SAME{LITERAL}: replica_groups = dense<[[0, 1, 2, 3]]>
// CHECK: stablehlo.maximum
// CHECK: stablehlo.compare LT, %[[ALL]]
// CHECK: do {
// CHECK-NOT: channel_handle
module attributes {mhlo.num_partitions = 4 : i32} {
  func.func @main(%x: tensor<8x4xf32> {mhlo.sharding = "{devices=[4,1]<=[4]}"})
      -> (tensor<8x4xf32> {mhlo.sharding = "{devices=[4,1]<=[4]}"}) {
    %limit = stablehlo.constant dense<100.0> : tensor<f32>
    %low = stablehlo.constant dense<0xFF800000> : tensor<f32>
    %0 = stablehlo.while(%v = %x) : tensor<8x4xf32>
     cond {
      %1 = stablehlo.reduce(%v init: %low) applies stablehlo.maximum across dimensions = [0, 1]
        : (tensor<8x4xf32>, tensor<f32>) -> tensor<f32>
      %2 = stablehlo.compare LT, %1, %limit : (tensor<f32>, tensor<f32>) -> tensor<i1>
      stablehlo.return %2 : tensor<i1>
    } do {
      %1 = stablehlo.add %v, %v : tensor<8x4xf32>
      stablehlo.return %1 : tensor<8x4xf32>
    }
    return %0 : tensor<8x4xf32>
  }
}
