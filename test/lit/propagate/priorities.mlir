// A dimension of a lower priority number propagates first: %b's split of columns reaches the sum before %a's of rows.
// RUN: shardpass-opt %s "propagate{effort=0}" | FileCheck %s

sdy.mesh @m = <["x"=2, "y"=2]>

// CHECK-LABEL: func.func @main
// CHECK-SAME: tensor<8x8xf32> {mhlo.sharding = "{devices=[2,1,2]<=[4] last_tile_dim_replicate}"}
func.func @main(%a: tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@m, [{"x"}p1, {}]>},
                %b: tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@m, [{}, {"x"}]>}) -> tensor<8x8xf32> {
  // CHECK: stablehlo.add {{.*}} {mhlo.sharding = "{devices=[1,2,2]<=[4] last_tile_dim_replicate}"}
  %0 = stablehlo.add %a, %b : tensor<8x8xf32>
  return %0 : tensor<8x8xf32>
}
