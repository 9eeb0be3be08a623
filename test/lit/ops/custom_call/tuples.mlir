// A flat tuple of results is several results. A call that HLO would read as another one without its tuples gets them
// back, of tiles.
// RUN: shardpass-opt %s import | FileCheck %s --check-prefix=IMPORT
// RUN: shardpass-opt %s partition 2>%t | FileCheck %s
// RUN: FileCheck %s --check-prefix=REMARK --input-file=%t
// IMPORT-NOT: tuple_element
// IMPORT: %[[TOP:.*]]:2 = stablehlo.custom_call @TopK(%arg0) {mhlo.sharding = "{{[{][{]}}devices=[2,1]<=[2]}, {devices=[2,1]<=[2]}}", shardpass.pinned} : (tensor<8x64xf32>) -> (tensor<8x4xf32>, tensor<8x4xi32>)
// IMPORT: stablehlo.custom_call @of_pair(%[[TOP]]#0, %[[TOP]]#1) {mhlo.sharding = "{replicated}", shardpass.pinned, shardpass.tuples = (tuple<tensor<8x4xf32>, tensor<8x4xi32>>) -> tuple<tensor<8x4xf32>>}
// REMARK: :24:10: remark: stablehlo.custom_call @of_pair is computed in full on every device
// CHECK-LABEL: @main
// CHECK: %[[TOP:.*]]:2 = stablehlo.custom_call @TopK(%arg0) : (tensor<4x64xf32>) -> (tensor<4x4xf32>, tensor<4x4xi32>)
// CHECK: stablehlo.all_gather
// CHECK: %[[PAIR:.*]] = stablehlo.tuple {{.*}} : tuple<tensor<8x4xf32>, tensor<8x4xi32>>
// CHECK: %[[CALL:.*]] = stablehlo.custom_call @of_pair(%[[PAIR]]) : (tuple<tensor<8x4xf32>, tensor<8x4xi32>>) -> tuple<tensor<8x4xf32>>
// CHECK: %[[ONE:.*]] = stablehlo.get_tuple_element %[[CALL]][0]
// CHECK: return %[[ONE]]
// CHECK-NOT: shardpass.tuples
module attributes {mhlo.num_partitions = 2 : i32} {
  func.func @main(%x: tensor<8x64xf32> {mhlo.sharding = "{devices=[2,1]<=[2]}"}) -> (tensor<8x4xf32> {mhlo.sharding = "{replicated}"}) {
    %0 = stablehlo.custom_call @TopK(%x) {mhlo.sharding = "{{devices=[2,1]<=[2]}, {devices=[2,1]<=[2]}}", shardpass.pinned} : (tensor<8x64xf32>) -> tuple<tensor<8x4xf32>, tensor<8x4xi32>>
    %values = stablehlo.get_tuple_element %0[0] : (tuple<tensor<8x4xf32>, tensor<8x4xi32>>) -> tensor<8x4xf32>
    %places = stablehlo.get_tuple_element %0[1] : (tuple<tensor<8x4xf32>, tensor<8x4xi32>>) -> tensor<8x4xi32>
    %pair = stablehlo.tuple %values, %places : tuple<tensor<8x4xf32>, tensor<8x4xi32>>
    %1 = stablehlo.custom_call @of_pair(%pair) {mhlo.sharding = "{{replicated}}"} : (tuple<tensor<8x4xf32>, tensor<8x4xi32>>) -> tuple<tensor<8x4xf32>>
    %2 = stablehlo.get_tuple_element %1[0] : (tuple<tensor<8x4xf32>>) -> tensor<8x4xf32>
    return %2 : tensor<8x4xf32>
  }
}
