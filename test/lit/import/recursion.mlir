// Functions that call one another recursively cannot be inlined.
// RUN: shardpass-opt %s import --split-input-file --verify-diagnostics

func.func @main(%x: tensor<8xf32>) -> tensor<8xf32> {
  %0 = call @even(%x) : (tensor<8xf32>) -> tensor<8xf32>
  return %0 : tensor<8xf32>
}
func.func private @even(%x: tensor<8xf32>) -> tensor<8xf32> {
  %0 = call @odd(%x) : (tensor<8xf32>) -> tensor<8xf32>
  return %0 : tensor<8xf32>
}
func.func private @odd(%x: tensor<8xf32>) -> tensor<8xf32> {
  // expected-error@below {{functions call one another recursively: @even -> @odd -> @even [SP205]}}
  %0 = call @even(%x) : (tensor<8xf32>) -> tensor<8xf32>
  return %0 : tensor<8xf32>
}

// -----

func.func @main(%x: tensor<8xf32>) -> tensor<8xf32> {
  // expected-error@below {{functions call one another recursively: @main -> @main [SP205]}}
  %0 = call @main(%x) : (tensor<8xf32>) -> tensor<8xf32>
  return %0 : tensor<8xf32>
}
