// case 3: a reducer that keeps the last number that is not zero depends on the order of the elements. Of two reduced
// dimensions a split of the first keeps the order, so that parts can be joined; a split of the second is undone first.
// RUN: shardpass-opt %s 'partition{effort=0}' --verify-diagnostics | FileCheck %s
// RUN: shardpass-run %s partition --devices 4 --check

// Rows over axis 0 (500 of 1000), columns over axis 1 (300 of 600): columns are gathered over the minor axis, then the results
// of the two halves of rows, of one element each, over the major one.
// A device lacks 500 rows of 300 columns of 4 bytes: 600000.
// CHECK-LABEL: func.func @main(%arg0: tensor<500x300xf32>
// CHECK: "stablehlo.all_gather"
// CHECK-SAME{LITERAL}: replica_groups = dense<[[0, 1], [2, 3]]>
// CHECK: stablehlo.reduce({{.*}}) across dimensions = [0, 1] : (tensor<500x600xf32>
// CHECK: "stablehlo.all_gather"
// CHECK-SAME{LITERAL}: replica_groups = dense<[[0, 2], [1, 3]]>
// CHECK-SAME: shardpass.cause = "parts of stablehlo.reduce over a split dimension"
// CHECK: stablehlo.reduce({{.*}}) across dimensions = [0] : (tensor<2xf32>
// CHECK-NOT: channel_handle
module attributes {mhlo.num_partitions = 4 : i32} {
  func.func @main(%x: tensor<1000x600xf32> {mhlo.sharding = "{devices=[2,2]<=[4]}"}) -> tensor<f32> {
    %zero = stablehlo.constant dense<0.0> : tensor<f32>
    // expected-remark@below {{needs dimension 1 of its operand 0 (tensor<1000x600xf32>) in full on each device; 600000 bytes are gathered}}
    %0 = stablehlo.reduce(%x init: %zero) across dimensions = [0, 1] : (tensor<1000x600xf32>, tensor<f32>) -> tensor<f32>
      reducer(%a: tensor<f32>, %b: tensor<f32>) {
        %none = stablehlo.constant dense<0.0> : tensor<f32>
        %1 = stablehlo.compare NE, %b, %none : (tensor<f32>, tensor<f32>) -> tensor<i1>
        %2 = stablehlo.select %1, %b, %a : tensor<i1>, tensor<f32>
        stablehlo.return %2 : tensor<f32>
      }
    return %0 : tensor<f32>
  }
}
