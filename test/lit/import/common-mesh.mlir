// The coarsest mesh in whose axes every sharding can be said: 8 cut by halves on one side, by quarters on the other.
// RUN: shardpass-opt %s import | FileCheck %s

// [2,4] needs 2 x 4, [4,2] needs 4 x 2: together 2 x 2 x 2.
// CHECK: shardpass.mesh = "mesh['axis_0'=2,'axis_1'=2,'axis_2'=2]"
// CHECK-LABEL: func.func @main(
// CHECK-SAME: {mhlo.sharding = "{devices=[2,4]<=[8]}"}
// CHECK-SAME: {mhlo.sharding = "{devices=[4,2]<=[8]}"}
func.func @main(%x: tensor<8x8xf32> {mhlo.sharding = "{devices=[2,4]<=[8]}"},
                %y: tensor<8x8xf32> {mhlo.sharding = "{devices=[4,2]<=[8]}"}) -> tensor<8x8xf32> {
  return %x : tensor<8x8xf32>
}
