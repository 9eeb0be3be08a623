// A roll by one row, as JAX writes it: every device gets the last row of the one before, the first that of the last.
// RUN: shardpass-opt %s partition | FileCheck %s
// RUN: shardpass-run %s partition --devices 4 --check
// RUN: shardpass-opt %s import,shardpass-propagate | FileCheck %s --check-prefix=BEFORE
// RUN: shardpass-explain %s | FileCheck %s --check-prefix=WHY

// CHECK-LABEL: func.func @main(
// CHECK-SAME: %[[X:[^:]*]]: tensor<2x16xf32>
// CHECK: %[[LAST:.*]] = stablehlo.slice %[[X]] [1:2, 0:16]
// CHECK: %[[ROW:.*]] = "stablehlo.collective_permute"(%[[LAST]])
// CHECK-SAME{LITERAL}: source_target_pairs = dense<[[3, 0], [0, 1], [1, 2], [2, 3]]>
// CHECK: %[[OWN:.*]] = stablehlo.slice %[[X]] [0:1, 0:16]
// CHECK: %[[OUT:.*]] = stablehlo.concatenate %[[ROW]], %[[OWN]], dim = 0
// CHECK-NOT: shardpass.splice
// CHECK: return %[[OUT]]

// propagation sees the user's ops
// BEFORE-COUNT-2: stablehlo.slice
// BEFORE: stablehlo.concatenate

// WHY: each device receives 64 B
// WHY: a roll across tiles
module attributes {mhlo.num_partitions = 4 : i32} {
  func.func @main(%x: tensor<8x16xf32> {mhlo.sharding = "{devices=[4,1]<=[4]}"})
      -> (tensor<8x16xf32> {mhlo.sharding = "{devices=[4,1]<=[4]}"}) {
    %0 = stablehlo.slice %x [7:8, 0:16] : (tensor<8x16xf32>) -> tensor<1x16xf32>
    %1 = stablehlo.slice %x [0:7, 0:16] : (tensor<8x16xf32>) -> tensor<7x16xf32>
    %2 = stablehlo.concatenate %0, %1, dim = 0 : (tensor<1x16xf32>, tensor<7x16xf32>) -> tensor<8x16xf32>
    return %2 : tensor<8x16xf32>
  }
}
