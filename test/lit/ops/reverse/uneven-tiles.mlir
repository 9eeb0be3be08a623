// 7 rows over 4 devices are tiles of 2, the last with one row and one of padding. Row r of the result is row 6 - r of
// the operand, so device d wants the first row of device 3 - d, and behind it the second row of device 2 - d: one row
// of each of two tiles (device 1 has its own second row). Padding does not come to the front, and no tile is gathered.
// RUN: shardpass-opt %s partition | FileCheck %s
// RUN: shardpass-run %s partition --devices 4 --check

// CHECK-LABEL: func.func @main(%arg0: tensor<2x256xf32>
// CHECK: "stablehlo.collective_permute"
// CHECK-SAME{LITERAL}: source_target_pairs = dense<[[3, 0], [2, 1], [1, 2], [0, 3]]>
// CHECK-SAME: (tensor<1x256xf32>) -> tensor<1x256xf32>
// CHECK: "stablehlo.collective_permute"
// CHECK-SAME{LITERAL}: source_target_pairs = dense<[[2, 0], [0, 2]]>
// CHECK-SAME: (tensor<1x256xf32>) -> tensor<1x256xf32>
// CHECK-NOT: channel_handle
module attributes {mhlo.num_partitions = 4 : i32} {
  func.func @main(%x: tensor<7x256xf32> {mhlo.sharding = "{devices=[4,1]<=[4]}"})
      -> (tensor<7x256xf32> {mhlo.sharding = "{devices=[4,1]<=[4]}"}) {
    %0 = stablehlo.reverse %x, dims = [0] : tensor<7x256xf32>
    return %0 : tensor<7x256xf32>
  }
}
