// Not joined: one that needs the other, other groups, what is too large; in a loop only what is in it.
// RUN: shardpass-opt %s --split-input-file 'builtin.module(shardpass-join{most=64})' | FileCheck %s

// CHECK-LABEL: module @one_needs_the_other
// CHECK-COUNT-2: "stablehlo.collective_permute"
module @one_needs_the_other {
  func.func @main(%one_needs_the_other: tensor<3xf32>) -> tensor<3xf32> {
    %0 = "stablehlo.collective_permute"(%one_needs_the_other) <{channel_handle = #stablehlo.channel_handle<handle = 1, type = 1>, source_target_pairs = dense<[[0, 1], [1, 0]]> : tensor<2x2xi64>}> : (tensor<3xf32>) -> tensor<3xf32>
    %1 = stablehlo.negate %0 : tensor<3xf32>
    %2 = "stablehlo.collective_permute"(%1) <{channel_handle = #stablehlo.channel_handle<handle = 2, type = 1>, source_target_pairs = dense<[[0, 1], [1, 0]]> : tensor<2x2xi64>}> : (tensor<3xf32>) -> tensor<3xf32>
    return %2 : tensor<3xf32>
  }
}

// -----
// CHECK-LABEL: module @other_pairs
// CHECK-COUNT-2: "stablehlo.collective_permute"(%arg0)
module @other_pairs {
  func.func @main(%other_pairs: tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>) {
    %0 = "stablehlo.collective_permute"(%other_pairs) <{channel_handle = #stablehlo.channel_handle<handle = 1, type = 1>, source_target_pairs = dense<[[0, 1], [1, 0]]> : tensor<2x2xi64>}> : (tensor<4xf32>) -> tensor<4xf32>
    %1 = "stablehlo.collective_permute"(%other_pairs) <{channel_handle = #stablehlo.channel_handle<handle = 2, type = 1>, source_target_pairs = dense<[[0, 1]]> : tensor<1x2xi64>}> : (tensor<4xf32>) -> tensor<4xf32>
    return %0, %1 : tensor<4xf32>, tensor<4xf32>
  }
}

// -----
// CHECK-LABEL: module @too_large
// CHECK-COUNT-2: "stablehlo.collective_permute"
module @too_large {
  func.func @main(%too_large: tensor<9xf32>) -> (tensor<9xf32>, tensor<9xf32>) {
    %0 = "stablehlo.collective_permute"(%too_large) <{channel_handle = #stablehlo.channel_handle<handle = 1, type = 1>, source_target_pairs = dense<[[0, 1], [1, 0]]> : tensor<2x2xi64>}> : (tensor<9xf32>) -> tensor<9xf32>
    %1 = stablehlo.negate %too_large : tensor<9xf32>
    %2 = "stablehlo.collective_permute"(%1) <{channel_handle = #stablehlo.channel_handle<handle = 2, type = 1>, source_target_pairs = dense<[[0, 1], [1, 0]]> : tensor<2x2xi64>}> : (tensor<9xf32>) -> tensor<9xf32>
    return %0, %2 : tensor<9xf32>, tensor<9xf32>
  }
}

// -----
// One before the loop, one in it, one behind it: the outer two are joined, the loop's is its own.
// CHECK-LABEL: module @one_in_a_loop
// CHECK: stablehlo.while
// CHECK: "stablehlo.collective_permute"(%{{.*}}) {{.*}} : (tensor<5xf32>) -> tensor<5xf32>
// CHECK: "stablehlo.collective_permute"(%{{.*}}) {{.*}} : (tensor<1x10xf32>) -> tensor<1x10xf32>
// CHECK-NOT: "stablehlo.collective_permute"
module @one_in_a_loop {
  func.func @main(%loop: tensor<5xf32>) -> (tensor<5xf32>, tensor<5xf32>, tensor<5xf32>) {
    %0 = "stablehlo.collective_permute"(%loop) <{channel_handle = #stablehlo.channel_handle<handle = 1, type = 1>, source_target_pairs = dense<[[0, 1], [1, 0]]> : tensor<2x2xi64>}> : (tensor<5xf32>) -> tensor<5xf32>
    %1 = stablehlo.while(%i = %loop) : tensor<5xf32>
      cond {
        %true = stablehlo.constant dense<true> : tensor<i1>
        stablehlo.return %true : tensor<i1>
      } do {
        %in = "stablehlo.collective_permute"(%i) <{channel_handle = #stablehlo.channel_handle<handle = 2, type = 1>, source_target_pairs = dense<[[0, 1], [1, 0]]> : tensor<2x2xi64>}> : (tensor<5xf32>) -> tensor<5xf32>
        stablehlo.return %in : tensor<5xf32>
      }
    %2 = "stablehlo.collective_permute"(%1) <{channel_handle = #stablehlo.channel_handle<handle = 3, type = 1>, source_target_pairs = dense<[[0, 1], [1, 0]]> : tensor<2x2xi64>}> : (tensor<5xf32>) -> tensor<5xf32>
    return %0, %1, %2 : tensor<5xf32>, tensor<5xf32>, tensor<5xf32>
  }
}
