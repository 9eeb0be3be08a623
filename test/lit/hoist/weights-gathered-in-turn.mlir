// A program of which the redistributions were placed before, so that two weights are gathered one after the other and
// one whole weight is held at a time. Either of them outside, the loop would hold two at once. A remark says what each
// gather costs, and the option lets both go. (Those that a plan makes stand before the loop where memory has room:
// test/unit/planning/test_hoists.py.)
// RUN: shardpass-opt %s 'shardpass-hoist' --verify-diagnostics | FileCheck %s
// RUN: shardpass-opt %s 'builtin.module(shardpass-hoist{most=1000000})' | FileCheck %s --check-prefix=ALL

// CHECK-LABEL: func.func @main(
// CHECK-NOT: shardpass.redistribute
// CHECK: stablehlo.while
// CHECK-COUNT-2: shardpass.redistribute

// ALL-LABEL: func.func @main(
// ALL-COUNT-2: shardpass.redistribute
// ALL: stablehlo.while
// ALL-NOT: shardpass.redistribute
module attributes {mhlo.num_partitions = 8 : i32, mhlo.num_replicas = 1 : i32} {
  func.func @main(%a: tensor<8x64xf32>, %b: tensor<8x64xf32>, %x: tensor<8x64xf32>) -> tensor<8x64xf32> {
    %zero = stablehlo.constant dense<0> : tensor<i32>
    %0:2 = stablehlo.while(%i = %zero, %h = %x) : tensor<i32>, tensor<8x64xf32>
    cond {
      %five = stablehlo.constant dense<5> : tensor<i32>
      %1 = stablehlo.compare LT, %i, %five, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
      stablehlo.return %1 : tensor<i1>
    } do {
      // Received: 7 of 8 parts of 16384 bytes.
      // expected-remark@below {{in every iteration of the loop, 14336 bytes each time; redistributing it once before the loop would keep 16384 more bytes alive during the loop}}
      %whole_a = stablehlo.custom_call @shardpass.redistribute(%a) {shardpass.from = "{devices=[8,1]<=[8]}", shardpass.to = "{replicated}", shardpass.global_type = tensor<64x64xf32>} : (tensor<8x64xf32>) -> tensor<64x64xf32>
      %1 = stablehlo.dot_general %h, %whole_a, contracting_dims = [1] x [0] : (tensor<8x64xf32>, tensor<64x64xf32>) -> tensor<8x64xf32>
      %2 = stablehlo.tanh %1 : tensor<8x64xf32>
      // expected-remark@below {{in every iteration of the loop, 14336 bytes each time}}
      %whole_b = stablehlo.custom_call @shardpass.redistribute(%b) {shardpass.from = "{devices=[8,1]<=[8]}", shardpass.to = "{replicated}", shardpass.global_type = tensor<64x64xf32>} : (tensor<8x64xf32>) -> tensor<64x64xf32>
      %3 = stablehlo.dot_general %2, %whole_b, contracting_dims = [1] x [0] : (tensor<8x64xf32>, tensor<64x64xf32>) -> tensor<8x64xf32>
      %one = stablehlo.constant dense<1> : tensor<i32>
      %4 = stablehlo.add %i, %one : tensor<i32>
      stablehlo.return %4, %3 : tensor<i32>, tensor<8x64xf32>
    }
    return %0#1 : tensor<8x64xf32>
  }
}
