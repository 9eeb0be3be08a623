// The number of devices that the module names is kept; a replicated program is on all of them.
// RUN: shardpass-opt %s import | FileCheck %s

// CHECK: module attributes {mhlo.num_partitions = 6 : i32, mhlo.num_replicas = 1 : i32, shardpass.mesh = "mesh['axis_0'=6]"}
module attributes {mhlo.num_partitions = 6 : i32, mhlo.num_replicas = 1 : i32} {
  func.func @main(%x: tensor<4xf32> {mhlo.sharding = "{replicated}"}) -> tensor<4xf32> {
    return %x : tensor<4xf32>
  }
}
