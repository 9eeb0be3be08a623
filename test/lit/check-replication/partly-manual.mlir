// A region that is manual over x alone: y is the partitioner's, and no promise over y is looked at.
// RUN: exits 1 shardpass-check-replication %s 2>&1 | FileCheck %s

sdy.mesh @mesh = <["x"=2, "y"=4]>

// CHECK: partly-manual.mlir:[[# @LINE + 4]]:{{[0-9]+}}: error: the output tensor<4x8xf32> (result 0 of @main) of the manual region is replicated over 'x', according to its out sharding, but its value may differ between devices 0 and 4 [SP237]
// CHECK: note: stablehlo.custom_call may differ between devices 0 and 4, which differ in 'x': the region's input has different tiles on devices 0 and 4
// CHECK-NOT: error:
func.func @main(%a: tensor<8x8xf32>) -> (tensor<4x8xf32>, tensor<8x8xf32>) {
  %0:2 = sdy.manual_computation(%a) in_shardings=[<@mesh, [{"x"}, {"y"}]>]
      out_shardings=[<@mesh, [{}, {"y"}]>, <@mesh, [{"x"}, {}]>] manual_axes={"x"} (%t: tensor<4x8xf32>) {
    %1 = stablehlo.negate %t : tensor<4x8xf32>
    sdy.return %1, %1 : tensor<4x8xf32>, tensor<4x8xf32>
  } : (tensor<8x8xf32>) -> (tensor<4x8xf32>, tensor<8x8xf32>)
  return %0#0, %0#1 : tensor<4x8xf32>, tensor<8x8xf32>
}
