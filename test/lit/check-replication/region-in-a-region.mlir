// Over x outside, over y inside: the inner sum over y keeps the inner promise; nothing keeps the outer one over x.
// RUN: exits 1 shardpass-check-replication %s 2>&1 | FileCheck %s

sdy.mesh @mesh = <["x"=2, "y"=2]>

// CHECK: region-in-a-region.mlir:[[# @LINE + 3]]:{{[0-9]+}}: error: the output tensor<2x2xf32> (result 0 of @main) of the manual region is replicated over 'x', {{.*}}devices 0 and 2 {{.*}}[SP237]
// CHECK-NOT: error:
func.func @main(%a: tensor<4x4xf32>) -> tensor<2x2xf32> {
  %0 = sdy.manual_computation(%a) in_shardings=[<@mesh, [{"x"}, {"y"}]>] out_shardings=[<@mesh, [{}, {}]>]
      manual_axes={"x"} (%t: tensor<2x4xf32>) {
    %1 = sdy.manual_computation(%t) in_shardings=[<@mesh, [{}, {"y"}]>] out_shardings=[<@mesh, [{}, {}]>]
        manual_axes={"y"} (%u: tensor<2x2xf32>) {
      %2 = "stablehlo.all_reduce"(%u) <{
        channel_handle = #stablehlo.channel_handle<handle = 1, type = 1>, use_global_device_ids,
        replica_groups = dense<[[0, 1], [2, 3]]> : tensor<2x2xi64>}> ({
      ^bb0(%p: tensor<f32>, %q: tensor<f32>):
        %s = stablehlo.add %p, %q : tensor<f32>
        stablehlo.return %s : tensor<f32>
      }) : (tensor<2x2xf32>) -> tensor<2x2xf32>
      sdy.return %2 : tensor<2x2xf32>
    } : (tensor<2x4xf32>) -> tensor<2x2xf32>
    sdy.return %1 : tensor<2x2xf32>
  } : (tensor<4x4xf32>) -> tensor<2x2xf32>
  return %0 : tensor<2x2xf32>
}
