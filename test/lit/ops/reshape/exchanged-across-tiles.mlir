// case 2: 6 rows of 4 become 8 rows of 3, both split over 3 devices. In row-major order the tiles of the operand begin
// at elements 0, 8 and 16; those of the result (ceil(8 / 3) = 3 rows, 9 elements) at 0, 9 and 18. So device 0 lacks one
// element of device 1, device 1 two of device 2: one permute of 2 elements, and no gather of all 24.
// RUN: shardpass-opt %s partition | FileCheck %s
// RUN: shardpass-run %s partition --devices 3 --check

// CHECK-LABEL: func.func @main(%arg0: tensor<2x4xf32>
// CHECK: "stablehlo.collective_permute"
// CHECK-SAME{LITERAL}: source_target_pairs = dense<[[1, 0], [2, 1]]>
// CHECK-SAME: (tensor<2xf32>) -> tensor<2xf32>
// CHECK-NOT: channel_handle
// CHECK: stablehlo.reshape %{{.*}} : (tensor<9xf32>) -> tensor<3x3xf32>
module attributes {mhlo.num_partitions = 3 : i32} {
  func.func @main(%x: tensor<6x4xf32> {mhlo.sharding = "{devices=[3,1]<=[3]}"})
      -> (tensor<8x3xf32> {mhlo.sharding = "{devices=[3,1]<=[3]}"}) {
    %0 = stablehlo.reshape %x : (tensor<6x4xf32>) -> tensor<8x3xf32>
    return %0 : tensor<8x3xf32>
  }
}
