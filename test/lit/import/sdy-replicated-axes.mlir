// Axes that the user keeps replicated stay so in propagation, whatever the ops around say; another value takes them.
// RUN: shardpass-opt %s import | FileCheck %s
// RUN: shardpass-opt %s 'propagate{effort=0}' | FileCheck %s --check-prefix=PROPAGATED
// RUN: shardpass-run %s partition --devices 4 --check

// CHECK-LABEL: func.func @main(
// CHECK-SAME: shardpass.replicated = "{mesh['x'=2,'y'=2], [{'y'}]}", shardpass.unspecified_dims = array<i64: 0, 1>}
// CHECK: stablehlo.custom_call @Sharding
// CHECK-SAME: shardpass.replicated = "{mesh['x'=2,'y'=2], [{'y'}]}"

// PROPAGATED-LABEL: func.func @main(
// PROPAGATED-NOT: shardpass.replicated
// PROPAGATED: stablehlo.negate %arg0 {mhlo.sharding = "{devices=[2,2]<=[4]}"}
// PROPAGATED: stablehlo.custom_call @Sharding(%0) {mhlo.sharding = "{devices=[2,1,2]<=[4] last_tile_dim_replicate}"}
// PROPAGATED: stablehlo.exponential %1 {mhlo.sharding = "{devices=[2,1,2]<=[4] last_tile_dim_replicate}"}
module {
  sdy.mesh @mesh = <["x"=2, "y"=2]>
  func.func @main(%x: tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}, {"y"}]>},
      %kept: tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{?}, {?}], replicated={"y"}>})
      -> (tensor<8x8xf32>, tensor<8x8xf32>) {
    %0 = stablehlo.negate %x : tensor<8x8xf32>
    %1 = sdy.sharding_constraint %0 <@mesh, [{?}, {?}], replicated={"y"}> : tensor<8x8xf32>
    %2 = stablehlo.exponential %1 : tensor<8x8xf32>
    return %2, %kept : tensor<8x8xf32>, tensor<8x8xf32>
  }
}
