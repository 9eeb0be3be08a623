// Every way to say which diagnostic is expected where.
// RUN: shardpass-opt %s --split-input-file --verify-diagnostics

// expected-error@+1 {{type of return operand 0 ('tensor<4xf32>') doesn't match function result type}}
func.func @line_after(%a: tensor<4xf32>) -> tensor<3xf32> { return %a : tensor<4xf32> }

// -----

func.func @same_line(%a: tensor<4xf32>) -> tensor<3xf32> { return %a : tensor<4xf32> } // expected-error {{type of return operand 0}}

// -----

func.func @line_before(%a: tensor<4xf32>) -> tensor<3xf32> { return %a : tensor<4xf32> }
// expected-error@-1 {{type of return operand 0}}

// -----

func.func @above(%a: tensor<4xf32>) -> tensor<3xf32> { return %a : tensor<4xf32> }
// expected-error@above {{type of return operand 0}}

// -----

func.func @below(%a: tensor<4xf32>) -> tensor<3xf32> {
  // expected-error@below {{type of return operand 0}}
  return %a : tensor<4xf32>
}

// -----

// The pattern's text is literal, but for what stands in nested braces.
// expected-error-re@below {{operand 0 ('tensor<{{[0-9]+}}xf32>') doesn't match {{.*}} in function @pattern [SP101]}}
func.func @pattern(%a: tensor<4xf32>) -> tensor<3xf32> { return %a : tensor<4xf32> }

// -----

// Nothing is expected and nothing happens.
func.func @silent() { return }
