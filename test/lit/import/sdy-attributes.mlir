// SDY's attributes on arguments, results and ops; axis names are kept, the mesh op goes.
// RUN: shardpass-opt %s import | FileCheck %s

// CHECK: module attributes {{{.*}}shardpass.mesh = "mesh['data'=2,'model'=4]"}
// CHECK-NOT: sdy.
// CHECK-LABEL: func.func @main(
// data is the major axis: device = 4 * data + model.
// CHECK-SAME: tensor<8x16xf32> {mhlo.sharding = "{devices=[2,4]<=[8]}"},
// CHECK-SAME: tensor<16x8xf32> {mhlo.sharding = "{devices=[4,1,2]<=[2,4]T(1,0) last_tile_dim_replicate}"},
// CHECK-SAME: tensor<8xf32> {mhlo.sharding = "{replicated}"})
// CHECK-SAME: -> (tensor<8x16xf32> {mhlo.sharding = "{devices=[1,8]<=[8]}"})
// model before data in one dimension: the transposed order of devices.
// CHECK: stablehlo.negate %{{.*}} {mhlo.sharding = "{devices=[8,1]<=[2,4]T(1,0)}", shardpass.pinned}
// CHECK-NOT: sdy.
module {
  sdy.mesh @mesh = <["data"=2, "model"=4]>
  func.func @main(
      %x: tensor<8x16xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"data"}, {"model"}]>},
      %y: tensor<16x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"model"}, {}]>},
      %z: tensor<8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}]>})
      -> (tensor<8x16xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {"data", "model"}]>}) {
    %0 = stablehlo.negate %x {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"model", "data"}, {}]>]>} : tensor<8x16xf32>
    return %0 : tensor<8x16xf32>
  }
}
