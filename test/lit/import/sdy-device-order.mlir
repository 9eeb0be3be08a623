// A mesh with device ids of its own: tiles go to the devices that it lists.
// RUN: shardpass-opt %s import | FileCheck %s

// Place (i, j) of the mesh is device ids[2 * i + j]: row 0 is on 3 and 2, row 1 on 1 and 0.
// CHECK: shardpass.mesh = "mesh['x'=2,'y'=2], device_ids=(3,2,1,0)"
// CHECK-LABEL: func.func @main(
// CHECK-SAME: tensor<4x4xf32> {mhlo.sharding = "{devices=[2,2]3,2,1,0}"}
module {
  sdy.mesh @mesh = <["x"=2, "y"=2], device_ids=[3, 2, 1, 0]>
  func.func @main(%x: tensor<4x4xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}, {"y"}]>}) -> tensor<4x4xf32> {
    return %x : tensor<4x4xf32>
  }
}
