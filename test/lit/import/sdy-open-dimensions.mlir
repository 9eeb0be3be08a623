// Open dimensions are those that propagation may split further; an open one may be split already.
// RUN: shardpass-opt %s import | FileCheck %s

// CHECK-LABEL: func.func @main(
// CHECK-SAME: tensor<8x4x2xf32> {mhlo.sharding = "{devices=[2,1,1,2]<=[4] last_tile_dim_replicate}", shardpass.unspecified_dims = array<i64: 0, 2>},
// CHECK-SAME: tensor<8xf32> {mhlo.sharding = "{devices=[2,2]<=[4] last_tile_dim_replicate}"})
module {
  sdy.mesh @mesh = <["a"=2, "b"=2]>
  func.func @main(
      %open: tensor<8x4x2xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"a", ?}, {}, {?}]>},
      %closed: tensor<8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"a"}]>}) -> tensor<8xf32> {
    return %closed : tensor<8xf32>
  }
}
