// A mesh that an attribute holds itself, in place of a name: in shardings, in manual computations, in replica groups. A
// mesh without axes that lists a device puts the whole array on that device.
// RUN: shardpass-opt %s import --split-input-file | FileCheck %s
// RUN: shardpass-opt %s partition --split-input-file

// Over ids 0,2,1,3 the devices of a=0 are 0 and 2.
// CHECK-LABEL: module @mesh_in_a_sharding
// CHECK-SAME: shardpass.mesh = "mesh['a'=2,'b'=2], device_ids=([2,2]T(1,0))"
// CHECK: func.func @main(
// CHECK-SAME: %arg0: tensor<8x4xf32> {mhlo.sharding = "{devices=[2,1,2]<=[2,2]T(1,0) last_tile_dim_replicate}"}
// CHECK: stablehlo.negate %arg0 {mhlo.sharding = "{maximal device=3}"}
module @mesh_in_a_sharding {
  func.func @main(%x: tensor<8x4xf32>
      {sdy.sharding = #sdy.sharding<mesh<["a"=2, "b"=2], device_ids=[0,2,1,3]>, [{"a"}, {}]>}) -> tensor<8x4xf32> {
    %0 = stablehlo.negate %x {sdy.sharding = #sdy.sharding_per_value<[<mesh<[], device_ids=[3]>, []>]>} : tensor<8x4xf32>
    return %0 : tensor<8x4xf32>
  }
}

// -----

// CHECK-LABEL: module @mesh_of_one_device
// CHECK-SAME: shardpass.mesh = "mesh['a'=2]"
// CHECK: stablehlo.negate %arg0 {mhlo.sharding = "{maximal device=1}"}
// CHECK: stablehlo.sine %{{.*}} {mhlo.sharding = "{maximal device=0}"}
module @mesh_of_one_device {
  sdy.mesh @m = <["a"=2]>
  sdy.mesh @one = <[], device_ids=[1]>
  sdy.mesh @zero = <[], device_ids=[0]>
  func.func @main(%x: tensor<8x4xf32> {sdy.sharding = #sdy.sharding<@m, [{"a"}, {}]>}) -> tensor<8x4xf32> {
    %0 = stablehlo.negate %x {sdy.sharding = #sdy.sharding_per_value<[<@one, []>]>} : tensor<8x4xf32>
    %1 = stablehlo.sine %0 {sdy.sharding = #sdy.sharding_per_value<[<@zero, []>]>} : tensor<8x4xf32>
    return %1 : tensor<8x4xf32>
  }
}

// -----

// CHECK-LABEL: module @mesh_in_replica_groups
// CHECK: replica_groups = dense<{{\[\[}}2, 0], [3, 1]]>
module @mesh_in_replica_groups {
  func.func @main(%x: tensor<8x4xf32> {sdy.sharding = #sdy.sharding<mesh<["a"=2, "b"=2]>, [{"a"}, {}]>}) -> tensor<8x4xf32> {
    %0 = sdy.manual_computation(%x) in_shardings=[<mesh<["a"=2, "b"=2]>, [{"a"}, {}]>]
        out_shardings=[<mesh<["a"=2, "b"=2]>, [{"a"}, {}]>] manual_axes={"a"} (%t: tensor<4x4xf32>) {
      %1 = "stablehlo.all_reduce"(%t) <{channel_handle = #stablehlo.channel_handle<handle = 1, type = 1>,
          replica_groups = #stablehlo.replica_group_mesh_axes<mesh = #stablehlo.mesh<axes = [<name = "a", size = 2>,
          <name = "b", size = 2>], device_ids = dense<[2, 3, 0, 1]> : tensor<4xi64>>,
          axes = [#stablehlo.axis_ref<name = "a">]>, use_global_device_ids}> ({
      ^bb0(%p: tensor<f32>, %q: tensor<f32>):
        %r = stablehlo.add %p, %q : tensor<f32>
        stablehlo.return %r : tensor<f32>
      }) : (tensor<4x4xf32>) -> tensor<4x4xf32>
      sdy.return %1 : tensor<4x4xf32>
    } : (tensor<8x4xf32>) -> tensor<8x4xf32>
    return %0 : tensor<8x4xf32>
  }
}

// -----

// What Shardy writes for who debugs it goes.
// CHECK-LABEL: module @debugging_attributes_go
// CHECK-NOT: sdy.
module @debugging_attributes_go {
  sdy.mesh @m = <["a"=2]>
  func.func @main(%x: tensor<8x4xf32> {sdy.sharding = #sdy.sharding<@m, [{"a"}, {}]>,
      sdy.sharding_origins = {a = "self"}}) -> tensor<8x4xf32> {
    %0 = stablehlo.negate %x {sdy.propagation_edges =
        #sdy.propagation_edges<[{step-0 = [{"a" = operand-0 -> [result-0]}]}]>} : tensor<8x4xf32>
    return %0 : tensor<8x4xf32>
  }
}
