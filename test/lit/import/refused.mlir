// What cannot be partitioned is refused before anything changes, with the op and its place.
// RUN: shardpass-opt %s import --split-input-file --verify-diagnostics

// expected-error@below {{an argument has the type memref<4xf32>, which XLA does not accept in a program}}
func.func @main(%x: memref<4xf32>) {
  return
}

// -----

func.func @main(%x: tensor<4xf32>, %i: tensor<1xi32>) -> tensor<2xf32> {
  // expected-error@below {{stablehlo.real_dynamic_slice takes its shape, or its bounds, from operands}}
  %0 = "stablehlo.real_dynamic_slice"(%x, %i, %i, %i)
      : (tensor<4xf32>, tensor<1xi32>, tensor<1xi32>, tensor<1xi32>) -> tensor<2xf32>
  return %0 : tensor<2xf32>
}
