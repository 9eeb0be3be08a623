// Members of a sharding group share one sharding, though no op ties %arg1 to the argument that the user split.
// RUN: shardpass-opt %s propagate | FileCheck %s

sdy.mesh @m = <["x"=2]>

// CHECK-LABEL: func.func @main
// CHECK-SAME: %arg1: tensor<8xf32> {mhlo.sharding = "{devices=[2]<=[2]}"}
func.func @main(%a: tensor<8xf32> {sdy.sharding = #sdy.sharding<@m, [{"x"}]>}, %b: tensor<8xf32>) -> tensor<8xf32> {
  sdy.sharding_group %a group_id = 0 : tensor<8xf32>
  %0 = stablehlo.negate %b : tensor<8xf32>
  sdy.sharding_group %0 group_id = 0 : tensor<8xf32>
  return %0 : tensor<8xf32>
}
