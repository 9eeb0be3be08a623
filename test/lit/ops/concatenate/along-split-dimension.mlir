// 8 rows and 4 rows side by side, all split over 4 devices: tiles of 2 and 1 become tiles of 3. Device 1 lacks two rows
// of device 2; device 2 lacks two of device 3 and one of device 0. Two permutes of at most two rows bring them, and no
// operand is gathered.
// RUN: shardpass-opt %s partition | FileCheck %s
// RUN: shardpass-run %s partition --devices 4 --check

// CHECK-LABEL: func.func @main(%arg0: tensor<2x256xf32> {{.*}}, %arg1: tensor<1x256xf32>
// CHECK: "stablehlo.collective_permute"
// CHECK-SAME: shardpass.cause = "a concatenation across tiles"
// CHECK-SAME: (tensor<2x256xf32>) -> tensor<2x256xf32>
// CHECK: "stablehlo.collective_permute"
// CHECK-SAME: (tensor<2x256xf32>) -> tensor<2x256xf32>
// CHECK-NOT: channel_handle
module attributes {mhlo.num_partitions = 4 : i32} {
  func.func @main(%x: tensor<8x256xf32> {mhlo.sharding = "{devices=[4,1]<=[4]}"},
      %y: tensor<4x256xf32> {mhlo.sharding = "{devices=[4,1]<=[4]}"})
      -> (tensor<12x256xf32> {mhlo.sharding = "{devices=[4,1]<=[4]}"}) {
    %0 = stablehlo.concatenate %x, %y, dim = 0 : (tensor<8x256xf32>, tensor<4x256xf32>) -> tensor<12x256xf32>
    return %0 : tensor<12x256xf32>
  }
}
