// A manual region in another, also in a function that the other calls, is manual over the axes of both. One that adds no
// axis is a constraint of what goes in and out; nothing is converted.
// RUN: shardpass-opt %s import --split-input-file | FileCheck %s
// RUN: shardpass-opt %s partition --split-input-file

// CHECK-LABEL: module @region_in_a_called_function
// CHECK-COUNT-2: stablehlo.custom_call @SPMDFullToShardShape
// CHECK: stablehlo.negate %{{.*}} {mhlo.sharding = "{manual}"} : tensor<4x2xf32>
// CHECK: replica_groups = dense<{{\[\[}}0, 1], [2, 3]]>
// CHECK-COUNT-2: stablehlo.custom_call @SPMDShardToFullShape
module @region_in_a_called_function {
  sdy.mesh @m = <["a"=2, "b"=2]>
  func.func @main(%x: tensor<8x4xf32> {sdy.sharding = #sdy.sharding<@m, [{"a"}, {}]>}) -> tensor<8x4xf32> {
    %0 = sdy.manual_computation(%x) in_shardings=[<@m, [{"a"}, {"b"}]>] out_shardings=[<@m, [{"a"}, {"b"}]>]
        manual_axes={"a"} (%t: tensor<4x4xf32>) {
      %1 = func.call @f(%t) : (tensor<4x4xf32>) -> tensor<4x4xf32>
      sdy.return %1 : tensor<4x4xf32>
    } : (tensor<8x4xf32>) -> tensor<8x4xf32>
    return %0 : tensor<8x4xf32>
  }
  func.func private @f(%t: tensor<4x4xf32>) -> tensor<4x4xf32> {
    %1 = sdy.manual_computation(%t) in_shardings=[<@m, [{}, {"b"}]>] out_shardings=[<@m, [{}, {"b"}]>]
        manual_axes={"b"} (%s: tensor<4x2xf32>) {
      %2 = stablehlo.negate %s : tensor<4x2xf32>
      %3 = "stablehlo.all_reduce"(%2) <{channel_handle = #stablehlo.channel_handle<handle = 1, type = 1>,
          replica_groups = #stablehlo.replica_group_mesh_axes<mesh = @m, axes = [#stablehlo.axis_ref<name = "b">]>,
          use_global_device_ids}> ({
      ^bb0(%p: tensor<f32>, %q: tensor<f32>):
        %r = stablehlo.add %p, %q : tensor<f32>
        stablehlo.return %r : tensor<f32>
      }) : (tensor<4x2xf32>) -> tensor<4x2xf32>
      sdy.return %3 : tensor<4x2xf32>
    } : (tensor<4x4xf32>) -> tensor<4x4xf32>
    return %1 : tensor<4x4xf32>
  }
}

// -----

// CHECK-LABEL: module @region_that_adds_no_axis
// CHECK-COUNT-1: stablehlo.custom_call @SPMDFullToShardShape
// CHECK-NOT: stablehlo.custom_call @SPMDFullToShardShape
// CHECK: stablehlo.negate %{{.*}} {mhlo.sharding = "{manual}"} : tensor<4x2xf32>
// CHECK-COUNT-1: stablehlo.custom_call @SPMDShardToFullShape
module @region_that_adds_no_axis {
  sdy.mesh @m = <["a"=2, "b"=2]>
  func.func @main(%x: tensor<8x4xf32> {sdy.sharding = #sdy.sharding<@m, [{"a"}, {}]>}) -> tensor<8x4xf32> {
    %0 = sdy.manual_computation(%x) in_shardings=[<@m, [{"a"}, {"b"}]>] out_shardings=[<@m, [{"a"}, {"b"}]>]
        manual_axes={"a", "b"} (%t: tensor<4x2xf32>) {
      %1 = sdy.manual_computation(%t) in_shardings=[<@m, [{}, {}]>] out_shardings=[<@m, [{}, {}]>]
          manual_axes={} (%s: tensor<4x2xf32>) {
        %2 = stablehlo.negate %s : tensor<4x2xf32>
        sdy.return %2 : tensor<4x2xf32>
      } : (tensor<4x2xf32>) -> tensor<4x2xf32>
      sdy.return %1 : tensor<4x2xf32>
    } : (tensor<8x4xf32>) -> tensor<8x4xf32>
    return %0 : tensor<8x4xf32>
  }
}

// -----

// CHECK-LABEL: module @region_over_no_axis
// CHECK-NOT: ToShardShape
// CHECK: stablehlo.custom_call @Sharding(%arg0) {{.*}}mhlo.sharding = "{devices=[2,2]<=[4]}"
// CHECK-NEXT: stablehlo.negate
// CHECK-NOT: shardpass.manual
module @region_over_no_axis {
  sdy.mesh @m = <["a"=2, "b"=2]>
  func.func @main(%x: tensor<8x4xf32> {sdy.sharding = #sdy.sharding<@m, [{"a"}, {}]>}) -> tensor<8x4xf32> {
    %0 = sdy.manual_computation(%x) in_shardings=[<@m, [{"a"}, {"b"}]>] out_shardings=[<@m, [{"a"}, {"b"}]>]
        manual_axes={} (%t: tensor<8x4xf32>) {
      %1 = stablehlo.negate %t : tensor<8x4xf32>
      sdy.return %1 : tensor<8x4xf32>
    } : (tensor<8x4xf32>) -> tensor<8x4xf32>
    return %0 : tensor<8x4xf32>
  }
}
