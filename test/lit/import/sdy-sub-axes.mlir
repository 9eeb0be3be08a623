// A sub-axis is a part of an axis; the common mesh is cut there, and keeps the name.
// RUN: shardpass-opt %s import | FileCheck %s

// CHECK: shardpass.mesh = "mesh['x:(1)2'=2,'x:(2)4'=4]"
// CHECK-LABEL: func.func @main(
// The major half of x splits rows in two; its minor quarter, columns in four: device = 4 * major + minor.
// CHECK-SAME: tensor<8x8xf32> {mhlo.sharding = "{devices=[2,1,4]<=[8] last_tile_dim_replicate}"},
// CHECK-SAME: tensor<8x8xf32> {mhlo.sharding = "{devices=[1,4,2]<=[2,4]T(1,0) last_tile_dim_replicate}"}
module {
  sdy.mesh @mesh = <["x"=8]>
  func.func @main(
      %major: tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x":(1)2}, {}]>},
      %minor: tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {"x":(2)4}]>}) -> tensor<8x8xf32> {
    return %major : tensor<8x8xf32>
  }
}
