// The user's own `sdy.sharding_rule`: the factor i passes through, j needs its dimension whole. On a 2x2 mesh rows stay
// split over the major axis, columns are gathered over the minor one. The rule has the sizes of whole arrays and is
// dropped.
// RUN: shardpass-opt %s "partition{effort=0}" --verify-diagnostics | FileCheck %s

// CHECK-LABEL: func.func @main(
// CHECK: %[[ROWS:.*]] = "stablehlo.all_gather"(%arg0)
// CHECK-SAME{LITERAL}: replica_groups = dense<[[0, 1], [2, 3]]>
// CHECK-SAME: (tensor<4x3xf32>) -> tensor<4x6xf32>
// CHECK: stablehlo.custom_call @by_rows(%[[ROWS]]) : (tensor<4x6xf32>) -> tensor<4x6xf32>
// CHECK-NOT: channel_handle
// CHECK: -> tensor<4x3xf32>
module attributes {mhlo.num_partitions = 4 : i32} {
  func.func @main(%x: tensor<8x6xf32> {mhlo.sharding = "{devices=[2,2]<=[4]}"}) -> tensor<8x6xf32> {
    // expected-remark@below {{needs dimension 1 of its operand 0 (tensor<8x6xf32>) in full on each device}}
    %0 = stablehlo.custom_call @by_rows(%x) {sdy.sharding_rule =
        #sdy.op_sharding_rule<([i, j])->([i, j]) {i=8, j=6} need_replication={j}, custom>} : (tensor<8x6xf32>) -> tensor<8x6xf32>
    return %0 : tensor<8x6xf32>
  }
}
