// sdy.sharding_constraint and sdy.reshard become custom calls at the same line.
// RUN: shardpass-opt %s import --mlir-print-debuginfo | FileCheck %s

// CHECK-LABEL: func.func @main(
// CHECK-SAME: %[[X:[^:]*]]: tensor<8x8xf32>
// CHECK: %[[A:.*]] = stablehlo.custom_call @Sharding(%[[X]]) {mhlo.sharding = "{devices=[4,1]<=[4]}"} : {{.*}} loc(#[[FIRST:.*]])
// CHECK: stablehlo.custom_call @Sharding(%[[A]]) {mhlo.sharding = "{devices=[1,4]<=[4]}"} : {{.*}} loc(#[[SECOND:.*]])
// CHECK-DAG: #[[FIRST]] = loc("{{.*}}":[[# @LINE + 5]]:10)
// CHECK-DAG: #[[SECOND]] = loc("{{.*}}":[[# @LINE + 5]]:10)
module {
  sdy.mesh @mesh = <["x"=4]>
  func.func @main(%x: tensor<8x8xf32>) -> tensor<8x8xf32> {
    %0 = sdy.sharding_constraint %x <@mesh, [{"x"}, {}]> : tensor<8x8xf32>
    %1 = sdy.reshard %0 <@mesh, [{}, {"x"}]> : tensor<8x8xf32>
    return %1 : tensor<8x8xf32>
  }
}
