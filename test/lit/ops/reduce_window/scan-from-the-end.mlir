// case 3, from the end: padding behind makes a running maximum of all later rows. A tile's total is the first row of
// its scan; the totals of later tiles (positions greater than the device's) are joined in.
// RUN: shardpass-opt %s partition | FileCheck %s
// RUN: shardpass-run %s partition --devices 4 --check

// CHECK-LABEL: func.func @main(%arg0: tensor<4x64xf32>
// CHECK: %[[SCAN:.*]] = "stablehlo.reduce_window"(%arg0
// CHECK-SAME{LITERAL}: padding = dense<[[0, 3], [0, 0]]>
// CHECK: %[[TOTAL:.*]] = stablehlo.slice %[[SCAN]] [0:1, 0:64]
// CHECK: "stablehlo.all_gather"(%[[TOTAL]])
// CHECK-SAME: (tensor<1x64xf32>) -> tensor<4x64xf32>
// CHECK-NOT: channel_handle
// CHECK: stablehlo.compare GT
// CHECK: stablehlo.maximum %{{.*}}, %[[SCAN]] : tensor<4x64xf32>
module attributes {mhlo.num_partitions = 4 : i32} {
  func.func @main(%x: tensor<16x64xf32> {mhlo.sharding = "{devices=[4,1]<=[4]}"})
      -> (tensor<16x64xf32> {mhlo.sharding = "{devices=[4,1]<=[4]}"}) {
    %low = stablehlo.constant dense<0xFF800000> : tensor<f32>
    %0 = "stablehlo.reduce_window"(%x, %low) <{window_dimensions = array<i64: 16, 1>,
        padding = dense<[[0, 15], [0, 0]]> : tensor<2x2xi64>}> ({
    ^bb0(%a: tensor<f32>, %b: tensor<f32>):
      %1 = stablehlo.maximum %a, %b : tensor<f32>
      stablehlo.return %1 : tensor<f32>
    }) : (tensor<16x64xf32>, tensor<f32>) -> tensor<16x64xf32>
    return %0 : tensor<16x64xf32>
  }
}
