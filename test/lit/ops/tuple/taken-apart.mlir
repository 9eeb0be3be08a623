// Elements of a tuple are values of their own, and its sharding is a constraint of each.
// RUN: shardpass-opt %s import | FileCheck %s
// RUN: shardpass-run %s partition --devices 2 --check
// CHECK-LABEL: @main
// CHECK-NOT: tuple
// CHECK: %[[ROWS:.*]] = stablehlo.custom_call @Sharding(%arg0) {mhlo.sharding = "{devices=[2,1]<=[2]}"}
// CHECK: stablehlo.custom_call @Sharding(%arg1) {mhlo.sharding = "{replicated}"}
// CHECK: %[[COLUMNS:.*]] = stablehlo.custom_call @Sharding(%[[ROWS]]) {mhlo.sharding = "{devices=[1,2]<=[2]}"}
// CHECK: %[[SUM:.*]] = stablehlo.add %[[COLUMNS]], %arg2
// CHECK-NEXT: return %[[SUM]]
module attributes {mhlo.num_partitions = 2 : i32} {
  func.func @main(%x: tensor<8x4xf32>, %y: tensor<4xf32>, %z: tensor<8x4xf32>) -> tensor<8x4xf32> {
    %pair = stablehlo.tuple %x, %y {mhlo.sharding = "{{devices=[2,1]<=[2]}, {replicated}}"} : tuple<tensor<8x4xf32>, tensor<4xf32>>
    %both = stablehlo.tuple %pair, %z : tuple<tuple<tensor<8x4xf32>, tensor<4xf32>>, tensor<8x4xf32>>
    %0:2 = call @swap(%both) : (tuple<tuple<tensor<8x4xf32>, tensor<4xf32>>, tensor<8x4xf32>>) -> (tensor<8x4xf32>, tuple<tensor<8x4xf32>, tensor<4xf32>>)
    %1 = stablehlo.get_tuple_element %0#1[0] {mhlo.sharding = "{devices=[1,2]<=[2]}"} : (tuple<tensor<8x4xf32>, tensor<4xf32>>) -> tensor<8x4xf32>
    %2 = stablehlo.add %1, %0#0 : tensor<8x4xf32>
    return %2 : tensor<8x4xf32>
  }
  func.func private @swap(%both: tuple<tuple<tensor<8x4xf32>, tensor<4xf32>>, tensor<8x4xf32>>) -> (tensor<8x4xf32>, tuple<tensor<8x4xf32>, tensor<4xf32>>) {
    %0 = stablehlo.get_tuple_element %both[0] : (tuple<tuple<tensor<8x4xf32>, tensor<4xf32>>, tensor<8x4xf32>>) -> tuple<tensor<8x4xf32>, tensor<4xf32>>
    %1 = stablehlo.get_tuple_element %both[1] : (tuple<tuple<tensor<8x4xf32>, tensor<4xf32>>, tensor<8x4xf32>>) -> tensor<8x4xf32>
    return %1, %0 : tensor<8x4xf32>, tuple<tensor<8x4xf32>, tensor<4xf32>>
  }
}
