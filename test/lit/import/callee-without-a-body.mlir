// A declared function has no body to inline.
// RUN: shardpass-opt %s import --verify-diagnostics

func.func @main(%x: tensor<8xf32>) -> tensor<8xf32> {
  // expected-error@below {{this call of @elsewhere has no target: the module does not define @elsewhere with a body [SP206]}}
  %0 = call @elsewhere(%x) : (tensor<8xf32>) -> tensor<8xf32>
  return %0 : tensor<8xf32>
}
func.func private @elsewhere(tensor<8xf32>) -> tensor<8xf32>
