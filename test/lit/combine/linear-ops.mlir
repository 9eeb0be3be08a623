// Sums wait past linear ops, where nothing else needs them before.
// RUN: shardpass-opt %s --split-input-file shardpass-combine | FileCheck %s

// Past what moves elements or changes the sign: the smaller, later tensor is summed.
// CHECK-LABEL: module @past_linear_ops
// CHECK: func.func @main(%arg0: tensor<8x2xf32>)
// CHECK-NEXT: stablehlo.transpose
// CHECK-NEXT: stablehlo.slice
// CHECK-NEXT: %[[N:.*]] = stablehlo.negate
// CHECK-NEXT: "stablehlo.all_reduce"(%[[N]])
// CHECK: (tensor<2x3xf32>) -> tensor<2x3xf32>
module @past_linear_ops {
  func.func @main(%linear: tensor<8x2xf32>) -> tensor<2x3xf32> {
    %0 = "stablehlo.all_reduce"(%linear) <{channel_handle = #stablehlo.channel_handle<handle = 1, type = 1>, replica_groups = dense<[[0, 1]]> : tensor<1x2xi64>, use_global_device_ids}> ({
    ^bb0(%p: tensor<f32>, %q: tensor<f32>):
      %s = stablehlo.add %p, %q : tensor<f32>
      stablehlo.return %s : tensor<f32>
    }) : (tensor<8x2xf32>) -> tensor<8x2xf32>
    %1 = stablehlo.transpose %0, dims = [1, 0] : (tensor<8x2xf32>) -> tensor<2x8xf32>
    %2 = stablehlo.slice %1 [0:2, 1:4] : (tensor<2x8xf32>) -> tensor<2x3xf32>
    %3 = stablehlo.negate %2 : tensor<2x3xf32>
    return %3 : tensor<2x3xf32>
  }
}

// -----
// Not past a product of two values, nor past a maximum: max(-a, -b) is no max(a, b) with its sign changed.
// CHECK-LABEL: module @not_past_products_or_maxima
// CHECK: func.func @main(%arg0: tensor<4xf32>)
// CHECK-NEXT: "stablehlo.all_reduce"(%arg0)
// CHECK: stablehlo.multiply
// CHECK: "stablehlo.all_reduce"
// CHECK: stablehlo.negate
module @not_past_products_or_maxima {
  func.func @main(%not_linear: tensor<4xf32>) -> tensor<4xf32> {
    %0 = "stablehlo.all_reduce"(%not_linear) <{channel_handle = #stablehlo.channel_handle<handle = 1, type = 1>, replica_groups = dense<[[0, 1]]> : tensor<1x2xi64>, use_global_device_ids}> ({
    ^bb0(%p: tensor<f32>, %q: tensor<f32>):
      %s = stablehlo.add %p, %q : tensor<f32>
      stablehlo.return %s : tensor<f32>
    }) : (tensor<4xf32>) -> tensor<4xf32>
    %1 = stablehlo.multiply %0, %0 : tensor<4xf32>
    %2 = "stablehlo.all_reduce"(%1) <{channel_handle = #stablehlo.channel_handle<handle = 2, type = 1>, replica_groups = dense<[[0, 1]]> : tensor<1x2xi64>, use_global_device_ids}> ({
    ^bb0(%p: tensor<f32>, %q: tensor<f32>):
      %s = stablehlo.maximum %p, %q : tensor<f32>
      stablehlo.return %s : tensor<f32>
    }) : (tensor<4xf32>) -> tensor<4xf32>
    %3 = stablehlo.negate %2 : tensor<4xf32>
    return %3 : tensor<4xf32>
  }
}

// -----
// Not where the sum itself is used too.
// CHECK-LABEL: module @sum_used_twice
// CHECK: func.func @main(%arg0: tensor<5x2xf32>)
// CHECK-NEXT: %[[S:.*]] = "stablehlo.all_reduce"(%arg0)
// CHECK: stablehlo.slice %[[S]]
module @sum_used_twice {
  func.func @main(%used_twice: tensor<5x2xf32>) -> (tensor<1x2xf32>, tensor<5x2xf32>) {
    %0 = "stablehlo.all_reduce"(%used_twice) <{channel_handle = #stablehlo.channel_handle<handle = 1, type = 1>, replica_groups = dense<[[0, 1]]> : tensor<1x2xi64>, use_global_device_ids}> ({
    ^bb0(%p: tensor<f32>, %q: tensor<f32>):
      %s = stablehlo.add %p, %q : tensor<f32>
      stablehlo.return %s : tensor<f32>
    }) : (tensor<5x2xf32>) -> tensor<5x2xf32>
    %1 = stablehlo.slice %0 [0:1, 0:2] : (tensor<5x2xf32>) -> tensor<1x2xf32>
    return %1, %0 : tensor<1x2xf32>, tensor<5x2xf32>
  }
}

// -----
// Not where the two sums are over different groups.
// CHECK-LABEL: module @different_groups
// CHECK: func.func @main(%arg0: tensor<6xf32>)
// CHECK-COUNT-2: "stablehlo.all_reduce"(%arg0)
// CHECK: stablehlo.add
// CHECK-NOT: all_reduce
module @different_groups {
  func.func @main(%other_groups: tensor<6xf32>) -> tensor<6xf32> {
    %0 = "stablehlo.all_reduce"(%other_groups) <{channel_handle = #stablehlo.channel_handle<handle = 1, type = 1>, replica_groups = dense<[[0, 1], [2, 3]]> : tensor<2x2xi64>, use_global_device_ids}> ({
    ^bb0(%p: tensor<f32>, %q: tensor<f32>):
      %s = stablehlo.add %p, %q : tensor<f32>
      stablehlo.return %s : tensor<f32>
    }) : (tensor<6xf32>) -> tensor<6xf32>
    %1 = "stablehlo.all_reduce"(%other_groups) <{channel_handle = #stablehlo.channel_handle<handle = 2, type = 1>, replica_groups = dense<[[0, 2], [1, 3]]> : tensor<2x2xi64>, use_global_device_ids}> ({
    ^bb0(%p: tensor<f32>, %q: tensor<f32>):
      %s = stablehlo.add %p, %q : tensor<f32>
      stablehlo.return %s : tensor<f32>
    }) : (tensor<6xf32>) -> tensor<6xf32>
    %2 = stablehlo.add %0, %1 : tensor<6xf32>
    return %2 : tensor<6xf32>
  }
}
