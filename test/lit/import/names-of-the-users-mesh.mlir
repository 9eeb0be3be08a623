// A mesh that the module names already gives the axes their names.
// RUN: shardpass-opt %s import | FileCheck %s

// CHECK: shardpass.mesh = "mesh['data'=2,'model'=4]"
module attributes {shardpass.mesh = "mesh['data'=2,'model'=4]"} {
  func.func @main(%x: tensor<8x8xf32> {mhlo.sharding = "{devices=[2,4]<=[8]}"}) -> tensor<8x8xf32> {
    return %x : tensor<8x8xf32>
  }
}
