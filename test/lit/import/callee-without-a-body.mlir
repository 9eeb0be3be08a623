// A declared function has no body to inline.
// RUN: shardpass-opt %s import --verify-diagnostics

func.func @main(%x: tensor<8xf32>) -> tensor<8xf32> {
  // expected-error@below {{call of @elsewhere, which the module does not define [SP206]}}
  %0 = call @elsewhere(%x) : (tensor<8xf32>) -> tensor<8xf32>
  return %0 : tensor<8xf32>
}
func.func private @elsewhere(tensor<8xf32>) -> tensor<8xf32>
