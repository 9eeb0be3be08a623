// Every notation is read and written canonically; the module gets the number of devices and the common mesh.
// RUN: shardpass-opt %s import | FileCheck %s

// CHECK: module attributes {mhlo.num_partitions = 4 : i32, mhlo.num_replicas = 1 : i32, shardpass.mesh = "mesh['axis_0'=2,'axis_1'=2]"}
// CHECK-LABEL: func.func @main(
// A list stays a list, an iota an iota.
// CHECK-SAME: %{{.*}}: tensor<8x4xf32> {mhlo.sharding = "{devices=[2,2]0,2,1,3}"},
// CHECK-SAME: %{{.*}}: tensor<8x4xf32> {mhlo.sharding = "{devices=[1,2,2]<=[4] last_tile_dim_replicate}"},
// CHECK-SAME: %{{.*}}: tensor<8x4xf32> {mhlo.sharding = "{devices=[4,1]<=[2,2]T(1,0)}"},
// CHECK-SAME: %{{.*}}: tensor<8x4xf32> {mhlo.sharding = "{replicated}"},
// CHECK-SAME: %{{.*}}: tensor<8x4xf32> {mhlo.sharding = "{maximal device=3}"},
// What says nothing gets nothing.
// CHECK-SAME: %{{.*}}: tensor<8x4xf32>) -> tensor<8x4xf32> {
func.func @main(
    %list: tensor<8x4xf32> {mhlo.sharding = "{devices=[2,2]0,2,1,3}"},
    %iota: tensor<8x4xf32> {mhlo.sharding = "{devices=[1,2,2]<=[4] last_tile_dim_replicate}"},
    %turned: tensor<8x4xf32> {mhlo.sharding = "{devices=[4,1]<=[2,2]T(1,0)}"},
    %whole: tensor<8x4xf32> {mhlo.sharding = "{replicated}"},
    %one: tensor<8x4xf32> {mhlo.sharding = "{maximal device=3}"},
    %none: tensor<8x4xf32>) -> tensor<8x4xf32> {
  return %none : tensor<8x4xf32>
}
