// Shapes must be static: each op and argument that has another is named.
// RUN: shardpass-opt %s import --verify-diagnostics

// expected-error@below {{an argument has the type tensor<?xf32>: shapes must be}}
func.func @main(%x: tensor<?xf32>) -> tensor<?xf32> {
  // expected-error@below {{stablehlo.negate has the type tensor<?xf32>: shapes must be}}
  %0 = stablehlo.negate %x : tensor<?xf32>
  return %0 : tensor<?xf32>
}
