// A factor of `blocked_propagation` is split where operand and result are split alike, and the call stays local along it;
// it hands no split on: where the result says nothing, it keeps the rows alone.
// RUN: shardpass-opt %s partition | FileCheck %s
// RUN: shardpass-opt %s 'shardpass-import,shardpass-propagate{effort=0}' | FileCheck %s --check-prefix=SPLITS

// CHECK-LABEL: func.func @main(
// CHECK-NOT: all_gather
// CHECK: stablehlo.custom_call @by_rows(%arg0) : (tensor<4x3xf32>) -> tensor<4x3xf32>
// CHECK-NOT: all_gather
// SPLITS: custom_call @by_rows(%arg0) {mhlo.sharding = "{devices=[2,2]<=[4]}"
// SPLITS: custom_call @by_rows(%arg1) {mhlo.sharding = "{devices=[2,1,2]<=[4] last_tile_dim_replicate}"
sdy.mesh @m = <["a"=2, "b"=2]>
func.func @main(%x: tensor<8x6xf32> {sdy.sharding = #sdy.sharding<@m, [{"a"}, {"b"}]>},
                %y: tensor<8x6xf32> {sdy.sharding = #sdy.sharding<@m, [{"a"}, {"b"}]>})
    -> (tensor<8x6xf32> {sdy.sharding = #sdy.sharding<@m, [{"a"}, {"b"}]>}, tensor<8x6xf32>) {
  %0 = stablehlo.custom_call @by_rows(%x) {sdy.sharding_rule =
      #sdy.op_sharding_rule<([i, j])->([i, j]) {i=8, j=6} blocked_propagation={j}, custom>} : (tensor<8x6xf32>) -> tensor<8x6xf32>
  %1 = stablehlo.custom_call @by_rows(%y) {sdy.sharding_rule =
      #sdy.op_sharding_rule<([i, j])->([i, j]) {i=8, j=6} blocked_propagation={j}, custom>} : (tensor<8x6xf32>) -> tensor<8x6xf32>
  return %0, %1 : tensor<8x6xf32>, tensor<8x6xf32>
}
