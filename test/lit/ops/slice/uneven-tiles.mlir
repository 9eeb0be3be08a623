// Rows 2 to 7 of 7 rows over 4 devices, to tiles of 2 rows again: the operand's tiles are ceil(7 / 4) = 2, and 1 in the
// last; every device takes the tile of its right neighbour, and what is left over is padding.
// RUN: shardpass-opt %s partition | FileCheck %s
// RUN: shardpass-run %s partition --devices 4 --check

// CHECK-LABEL: func.func @main(%arg0: tensor<2x256xf32>
// CHECK: "stablehlo.collective_permute"(%arg0)
// CHECK-SAME{LITERAL}: source_target_pairs = dense<[[1, 0], [2, 1], [3, 2]]>
// CHECK-SAME: (tensor<2x256xf32>) -> tensor<2x256xf32>
// CHECK-NOT: channel_handle
module attributes {mhlo.num_partitions = 4 : i32} {
  func.func @main(%x: tensor<7x256xf32> {mhlo.sharding = "{devices=[4,1]<=[4]}"})
      -> (tensor<5x256xf32> {mhlo.sharding = "{devices=[4,1]<=[4]}"}) {
    %0 = stablehlo.slice %x [2:7, 0:256] : (tensor<7x256xf32>) -> tensor<5x256xf32>
    return %0 : tensor<5x256xf32>
  }
}
