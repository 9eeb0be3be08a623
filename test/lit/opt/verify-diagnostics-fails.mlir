// What is expected and does not come, and what comes and is not expected, are errors at their places.
// RUN: exits 1 shardpass-opt %s --split-input-file --verify-diagnostics 2>&1 | FileCheck %s

// CHECK: verify-diagnostics-fails.mlir:[[# @LINE + 2]]:{{[0-9]+}}: error: unexpected error: {{.*}}type of return operand 0
// CHECK-NEXT: help:
func.func @unexpected(%a: tensor<4xf32>) -> tensor<3xf32> { return %a : tensor<4xf32> }

// -----

// CHECK-NEXT: error: expected error "never" was not produced [SP131]
// CHECK-NEXT: help:
// expected-error@below {{never}}
func.func @missing() { return }

// -----

// The right text at the wrong line is both.
// CHECK-NEXT: error: unexpected error: {{.*}}type of return operand 0
// CHECK-NEXT: help:
// CHECK-NEXT: error: expected error "type of return operand 0" was not produced
// CHECK-NEXT: help:
func.func @wrong_line(%a: tensor<4xf32>) -> tensor<3xf32> {
  // expected-error {{type of return operand 0}}
  return %a : tensor<4xf32>
}

// -----

// The right text with another severity is both, too.
// CHECK-NEXT: error: unexpected error: {{.*}}type of return operand 0
// CHECK-NEXT: help:
// CHECK-NEXT: error: expected warning "type of return operand 0" was not produced
// CHECK-NEXT: help:
func.func @wrong_severity(%a: tensor<4xf32>) -> tensor<3xf32> {
  // expected-warning@below {{type of return operand 0}}
  return %a : tensor<4xf32>
}

// -----

// One expectation takes one diagnostic.
// CHECK-NEXT: error: expected error "type of return" was not produced
// CHECK-NEXT: help:
func.func @twice(%a: tensor<4xf32>) -> tensor<3xf32> {
  // expected-error@below {{type of return}}
  // expected-error@below {{type of return}}
  return %a : tensor<4xf32>
}

// No more than these.
// CHECK-NOT: error:
