// Over which axes each value of a region may vary: place / 2 rem 2 over x, a sum over x over y, a gather of both nothing.
// RUN: shardpass-check-replication --print-varying %s | FileCheck %s
// RUN: exits 2 shardpass-check-replication --print-varying --format json %s
// PROCESSES: real

sdy.mesh @mesh = <["x"=2, "y"=2]>

// CHECK: print-varying.mlir:{{.*}}: SPMDFullToShardShape tensor<2x2xf32> may vary over 'x' and 'y'
// CHECK: print-varying.mlir:[[# @LINE + 8]]:{{[0-9]+}}: stablehlo.partition_id tensor<ui32> may vary over 'x' and 'y'
// CHECK: stablehlo.divide tensor<ui32> may vary over 'x'
// CHECK: stablehlo.all_reduce tensor<2x2xf32> may vary over 'y'
// CHECK: stablehlo.all_gather tensor<8x2xf32> is the same on all devices
// CHECK: print-varying.mlir: no problem found
func.func @main(%a: tensor<4x4xf32>) -> (tensor<2x4xf32>, tensor<2xui32>, tensor<8x2xf32>) {
  %0:3 = sdy.manual_computation(%a) in_shardings=[<@mesh, [{"x"}, {"y"}]>]
      out_shardings=[<@mesh, [{}, {"y"}]>, <@mesh, [{"x"}]>, <@mesh, [{}, {}]>] manual_axes={"x", "y"} (%t: tensor<2x2xf32>) {
    %id = stablehlo.partition_id : tensor<ui32>
    %two = stablehlo.constant dense<2> : tensor<ui32>
    %row = stablehlo.divide %id, %two : tensor<ui32>
    %one = stablehlo.reshape %row : (tensor<ui32>) -> tensor<1xui32>
    %sum = "stablehlo.all_reduce"(%t) <{
      channel_handle = #stablehlo.channel_handle<handle = 1, type = 1>, use_global_device_ids,
      replica_groups = dense<[[0, 2], [1, 3]]> : tensor<2x2xi64>}> ({
    ^bb0(%p: tensor<f32>, %q: tensor<f32>):
      %s = stablehlo.add %p, %q : tensor<f32>
      stablehlo.return %s : tensor<f32>
    }) : (tensor<2x2xf32>) -> tensor<2x2xf32>
    %all = "stablehlo.all_gather"(%t) <{all_gather_dim = 0 : i64,
      channel_handle = #stablehlo.channel_handle<handle = 2, type = 1>, use_global_device_ids,
      replica_groups = dense<[[0, 1, 2, 3]]> : tensor<1x4xi64>}> : (tensor<2x2xf32>) -> tensor<8x2xf32>
    sdy.return %sum, %one, %all : tensor<2x2xf32>, tensor<1xui32>, tensor<8x2xf32>
  } : (tensor<4x4xf32>) -> (tensor<2x4xf32>, tensor<2xui32>, tensor<8x2xf32>)
  return %0#0, %0#1, %0#2 : tensor<2x4xf32>, tensor<2xui32>, tensor<8x2xf32>
}
