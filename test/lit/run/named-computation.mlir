// The program of one device has the body of a named computation, too, and the constants of SDY.
// RUN: shardpass-run %s partition --devices 4 --check
// PROCESSES: real
sdy.mesh @mesh = <["a"=2, "b"=2]>
func.func @main(%x: tensor<8x2xi32>) -> tensor<8x2xi32> {
  %0 = sdy.named_computation<"outer">(%x) in_shardings=[<@mesh, [{"b"}, {}]>] out_shardings=[<@mesh, [{"a"}, {?}]>] (%y: tensor<8x2xi32>) {
    %1:2 = sdy.named_computation<"inner">(%y, %y) (%z: tensor<8x2xi32>, %t: tensor<8x2xi32>) {
      %2 = stablehlo.negate %z : tensor<8x2xi32>
      sdy.return %t, %2 : tensor<8x2xi32>, tensor<8x2xi32>
    } : (tensor<8x2xi32>, tensor<8x2xi32>) -> (tensor<8x2xi32>, tensor<8x2xi32>)
    %3 = stablehlo.multiply %1#0, %1#1 : tensor<8x2xi32>
    sdy.return %3 : tensor<8x2xi32>
  } : (tensor<8x2xi32>) -> tensor<8x2xi32>
  %1 = sdy.constant dense<3> : tensor<8x2xi32>
  %2 = stablehlo.add %0, %1 : tensor<8x2xi32>
  %3 = sdy.data_flow_edge %2 sharding=<@mesh, [{}, {"a"}]> : tensor<8x2xi32>
  return %3 : tensor<8x2xi32>
}
