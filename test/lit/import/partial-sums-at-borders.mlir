// RUN: shardpass-opt %s import | FileCheck %s
// RUN: shardpass-opt %s partition | FileCheck %s --check-prefix=TILES

// A partial sum over y is an array of its two summands, which y splits; it goes in and out unsummed. Each device computes
// its own in a region that is manual over y.

module {
  sdy.mesh @mesh = <["x"=4, "y"=2]>
  // CHECK-LABEL: @main
  // CHECK-SAME: tensor<2x8x4xf32> {mhlo.sharding = "{devices=[2,4,1]<=[4,2]T(1,0)}"
  // CHECK-SAME: shardpass.partial = "{devices=[4,1,2]<=[8] last_tile_dims={unreduced}}"
  // CHECK: stablehlo.dot_general
  // CHECK-SAME: shardpass.manual = "{devices=[2,4]<=[4,2]T(1,0) last_tile_dims={manual, replicated}}"
  // CHECK-SAME: (tensor<8x4xf32>, tensor<4x4xf32>) -> tensor<8x4xf32>
  // CHECK: stablehlo.add
  // CHECK-SAME: shardpass.manual
  // CHECK: stablehlo.custom_call @SPMDShardToFullShape
  // CHECK-SAME: (tensor<1x8x4xf32>) -> tensor<2x8x4xf32>
  // TILES-LABEL: @main
  // TILES: stablehlo.dot_general
  // TILES-NOT: all_reduce
  // TILES-NOT: reduce_scatter
  // TILES: stablehlo.add
  // TILES-SAME: tensor<2x4xf32>
  func.func @main(%a: tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}, {"y"}]>},
                  %b: tensor<8x4xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"y"}, {}]>},
                  %c: tensor<8x4xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}, {}], unreduced={"y"}>})
      -> (tensor<8x4xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}, {}], unreduced={"y"}>}) {
    %0 = stablehlo.dot_general %a, %b, contracting_dims = [1] x [0] : (tensor<8x8xf32>, tensor<8x4xf32>) -> tensor<8x4xf32>
    %1 = stablehlo.add %0, %c : tensor<8x4xf32>
    return %1 : tensor<8x4xf32>
  }
}
