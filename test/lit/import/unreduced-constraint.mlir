// RUN: shardpass-opt %s import | FileCheck %s
// RUN: shardpass-opt %s partition | FileCheck %s --check-prefix=TILES

// A sum that may wait is completed where it is cheapest: here it is scattered.

module {
  sdy.mesh @mesh = <["x"=4, "y"=2]>
  // CHECK-LABEL: @main
  // CHECK: custom_call @Sharding
  // CHECK-NOT: unreduced
  // CHECK-SAME: mhlo.sharding = "{devices=[4,1,2]<=[8] last_tile_dim_replicate}"
  // CHECK-SAME: shardpass.unspecified_dims = array<i64: 0, 1>
  // TILES-LABEL: @main
  // TILES: stablehlo.dot_general
  // TILES-NOT: all_reduce
  // TILES: "stablehlo.reduce_scatter"
  func.func @main(%a: tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}, {"y"}]>},
                  %b: tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"y"}, {}]>})
      -> (tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}, {"y"}]>}) {
    %0 = stablehlo.dot_general %a, %b, contracting_dims = [1] x [0] : (tensor<8x8xf32>, tensor<8x8xf32>) -> tensor<8x8xf32>
    %1 = sdy.sharding_constraint %0 <@mesh, [{"x"}, {}], unreduced={"y"}> : tensor<8x8xf32>
    return %1 : tensor<8x8xf32>
  }
}
