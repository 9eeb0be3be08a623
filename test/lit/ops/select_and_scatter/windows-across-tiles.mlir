// Windows of 3 rows, one row apart, cross the border between two tiles of 32 rows. Both devices look at the windows
// that touch their tile: each gets 2 rows of the operand, and the source of 2 windows at most. Each scatters into all
// that its windows span, and keeps its tile.
// RUN: shardpass-opt %s partition | FileCheck %s
// RUN: shardpass-run %s partition --devices 2 --check

// CHECK-LABEL: func.func @main(%arg0: tensor<32x256xf32>
// CHECK-NOT: all_gather
// CHECK: "stablehlo.collective_permute"
// CHECK-SAME: shardpass.cause = "windows across tiles"
// CHECK-NOT: all_gather
// CHECK: "stablehlo.select_and_scatter"
// CHECK: (tensor<36x256xf32>, tensor<34x256xf32>, tensor<f32>) -> tensor<36x256xf32>
// CHECK-NOT: channel_handle
// CHECK: return %{{.*}} : tensor<32x256xf32>
module attributes {mhlo.num_partitions = 2 : i32} {
  func.func @main(%x: tensor<64x256xf32> {mhlo.sharding = "{devices=[2,1]<=[2]}"}, %s: tensor<62x256xf32>)
      -> (tensor<64x256xf32> {mhlo.sharding = "{devices=[2,1]<=[2]}"}) {
    %zero = stablehlo.constant dense<0.0> : tensor<f32>
    %0 = "stablehlo.select_and_scatter"(%x, %s, %zero) <{window_dimensions = array<i64: 3, 1>}> ({
    ^bb0(%a: tensor<f32>, %b: tensor<f32>):
      %1 = stablehlo.compare GE, %a, %b : (tensor<f32>, tensor<f32>) -> tensor<i1>
      stablehlo.return %1 : tensor<i1>
    }, {
    ^bb0(%a: tensor<f32>, %b: tensor<f32>):
      %1 = stablehlo.add %a, %b : tensor<f32>
      stablehlo.return %1 : tensor<f32>
    }) : (tensor<64x256xf32>, tensor<62x256xf32>, tensor<f32>) -> tensor<64x256xf32>
    return %0 : tensor<64x256xf32>
  }
}
