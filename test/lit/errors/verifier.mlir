// What parses but is no valid program is refused at its line, before any pass.
// RUN: shardpass-opt %s partition --split-input-file --verify-diagnostics

func.func @main(%a: tensor<4xf32>, %b: tensor<5xf32>) -> tensor<4xf32> {
  // expected-error-re@below {{{{.+}} [SP101]}}
  %0 = "stablehlo.add"(%a, %b) : (tensor<4xf32>, tensor<5xf32>) -> tensor<4xf32>
  return %0 : tensor<4xf32>
}

// -----

func.func @main(%a: tensor<4xf32>) -> tensor<4xf32> {
  // expected-error@below {{use of undeclared SSA value name}}
  %0 = stablehlo.add %a, %b : tensor<4xf32>
  return %0 : tensor<4xf32>
}

// -----

func.func @main() {
  // expected-error@below {{Dialect `tosa' not found}}
  %0 = tosa.const : tensor<4xf32>
  return
}
