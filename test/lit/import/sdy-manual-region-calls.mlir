// A function that a partly manual region calls, and one that it calls in turn: their shardings name the free axes alone,
// so after import they say the manual axis "a" too. The function keeps its own reading where it is called outside.
// RUN: shardpass-opt %s import | FileCheck %s
// RUN: shardpass-run %s partition --devices 4 --check

// CHECK-LABEL: func.func @main(
// CHECK: stablehlo.custom_call @SPMDFullToShardShape
// CHECK: stablehlo.custom_call @Sharding
// CHECK-SAME: mhlo.sharding = "{devices=[2,1,2]<=[2,2]T(1,0) last_tile_dims={manual}}"
// CHECK: stablehlo.negate
// CHECK-SAME: mhlo.sharding = "{devices=[1,2,2]<=[2,2]T(1,0) last_tile_dims={manual}}"
// CHECK: stablehlo.custom_call @SPMDShardToFullShape
// CHECK: stablehlo.custom_call @Sharding
// CHECK-SAME: mhlo.sharding = "{devices=[2,1,2]<=[2,2]T(1,0) last_tile_dim_replicate}"
// CHECK: stablehlo.negate
// CHECK-SAME: mhlo.sharding = "{devices=[1,2,2]<=[2,2]T(1,0) last_tile_dim_replicate}"
// CHECK-NOT: func.func
module attributes {mhlo.num_partitions = 4 : i32} {
sdy.mesh @m = <["a"=2, "b"=2]>
func.func @main(%x: tensor<8x4xf32> {sdy.sharding = #sdy.sharding<@m, [{"a"}, {}]>}) -> tensor<8x4xf32> {
  %0 = sdy.manual_computation(%x) in_shardings=[<@m, [{"a"}, {}]>] out_shardings=[<@m, [{"a"}, {"b"}]>]
      manual_axes={"a"} (%t: tensor<4x4xf32>) {
    %1 = func.call @outer(%t) : (tensor<4x4xf32>) -> tensor<4x4xf32>
    sdy.return %1 : tensor<4x4xf32>
  } : (tensor<8x4xf32>) -> tensor<8x4xf32>
  %2 = stablehlo.slice %0 [0:4, 0:4] : (tensor<8x4xf32>) -> tensor<4x4xf32>
  %3 = func.call @inner(%2) : (tensor<4x4xf32>) -> tensor<4x4xf32>
  %4 = stablehlo.concatenate %3, %3, dim = 0 : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<8x4xf32>
  %5 = stablehlo.add %0, %4 : tensor<8x4xf32>
  return %5 : tensor<8x4xf32>
}
func.func private @outer(%x: tensor<4x4xf32>) -> tensor<4x4xf32> {
  %0 = func.call @inner(%x) : (tensor<4x4xf32>) -> tensor<4x4xf32>
  return %0 : tensor<4x4xf32>
}
func.func private @inner(%x: tensor<4x4xf32> {sdy.sharding = #sdy.sharding<@m, [{"b"}, {}]>}) -> tensor<4x4xf32> {
  %0 = stablehlo.negate %x {sdy.sharding = #sdy.sharding_per_value<[<@m, [{}, {"b"}]>]>} : tensor<4x4xf32>
  return %0 : tensor<4x4xf32>
}
}
