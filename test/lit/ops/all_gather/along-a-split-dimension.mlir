// The user's all_gather runs along the columns, which the automatic axis y splits. A dimension that a collective runs
// along is needed whole: columns are gathered over y first, then over x as the user wrote, and never over both at once.
// RUN: shardpass-opt %s partition --verify-diagnostics | FileCheck %s
// RUN: shardpass-run %s partition --devices 4 --check

// CHECK-LABEL: func.func @main(%arg0: tensor<4x4xf32>
// CHECK: "stablehlo.all_gather"
// CHECK-SAME{LITERAL}: replica_groups = dense<[[0, 1], [2, 3]]>
// CHECK-SAME: 4x4xf32>) -> tensor<{{.*}}4x8xf32>
// CHECK: "stablehlo.all_gather"
// CHECK-SAME{LITERAL}: replica_groups = dense<[[0, 2], [1, 3]]>
// CHECK-SAME: 4x8xf32>) -> tensor<4x16xf32>
// CHECK-NOT: channel_handle
module attributes {mhlo.num_partitions = 4 : i32} {
  sdy.mesh @m = <["x"=2, "y"=2]>
  func.func @main(%a: tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@m, [{"x"}, {"y"}]>})
      -> (tensor<8x16xf32> {sdy.sharding = #sdy.sharding<@m, [{"x"}, {}]>}) {
    %0 = sdy.manual_computation(%a) in_shardings=[<@m, [{"x"}, {?}]>] out_shardings=[<@m, [{"x"}, {?}]>]
        manual_axes={"x"} (%t: tensor<4x8xf32>) {
      // expected-remark@below {{needs dimension 1 of its operand 0 (tensor<4x8xf32>) in full on each device; 64 bytes are gathered}}
      %1 = "stablehlo.all_gather"(%t) <{all_gather_dim = 1 : i64,
          channel_handle = #stablehlo.channel_handle<handle = 1, type = 1>,
          replica_groups = dense<[[0, 2], [1, 3]]> : tensor<2x2xi64>, use_global_device_ids}>
          : (tensor<4x8xf32>) -> tensor<4x16xf32>
      sdy.return %1 : tensor<4x16xf32>
    } : (tensor<8x8xf32>) -> tensor<8x16xf32>
    return %0 : tensor<8x16xf32>
  }
}
