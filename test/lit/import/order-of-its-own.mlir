// A device order that fits no mesh of the others is kept as it is, with a remark at the value that has it.
// RUN: shardpass-opt %s import --verify-diagnostics | FileCheck %s

// CHECK: shardpass.mesh = "mesh['axis_0'=2,'axis_1'=2]"
// CHECK-LABEL: func.func @main(
// CHECK-SAME: %[[Z:[^:]*]]: tensor<8x8xf32> {mhlo.sharding = "{devices=[2,2]0,1,3,2}"})
func.func @main(
    %x: tensor<8x8xf32> {mhlo.sharding = "{devices=[2,2]<=[4]}"},
    %y: tensor<8x8xf32> {mhlo.sharding = "{devices=[2,2]<=[4]}"},
    // expected-remark@below {{the device order of {devices=[2,2]0,1,3,2} is not one that the axes of mesh['axis_0'=2,'axis_1'=2] can express}}
    %z: tensor<8x8xf32> {mhlo.sharding = "{devices=[2,2]0,1,3,2}"}) -> tensor<8x8xf32> {
  return %x : tensor<8x8xf32>
}
