// An op that nobody knows is computed whole on every device, and a remark says what that costs.
// RUN: shardpass-opt %s partition --verify-diagnostics | FileCheck %s

// Half of 64 x 4 bytes is missing on each device.
// CHECK-LABEL: func.func @main(
// CHECK: %[[WHOLE:.*]] = "stablehlo.all_gather"
// CHECK: (tensor<32xf32>) -> tensor<64xf32>
// CHECK: stablehlo.custom_call @mystery(%[[WHOLE]]) : (tensor<64xf32>) -> tensor<64xf32>
func.func @main(%x: tensor<64xf32> {mhlo.sharding = "{devices=[2]<=[2]}"}) -> (tensor<64xf32> {mhlo.sharding = "{replicated}"}) {
  // expected-remark@below {{; 128 bytes are gathered for it on each device [SP301]}}
  %0 = stablehlo.custom_call @mystery(%x) : (tensor<64xf32>) -> tensor<64xf32>
  return %0 : tensor<64xf32>
}
