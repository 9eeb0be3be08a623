// What leaves a loop, and what stays: by hand-written redistributions, one case a function.
// RUN: shardpass-opt %s --split-input-file shardpass-hoist | FileCheck %s

// A value from outside; one made in the loop of such a value goes with it. The result is no larger than the operand.
// CHECK-LABEL: module @from_outside
// CHECK: %[[N:.*]] = stablehlo.negate %arg1
// CHECK-NEXT: %[[R:.*]] = stablehlo.custom_call @shardpass.redistribute(%[[N]])
// CHECK-NEXT: stablehlo.while
// CHECK: stablehlo.add %{{.*}}, %[[R]]
module @from_outside attributes {mhlo.num_partitions = 2 : i32} {
  func.func @main(%go: tensor<i1>, %x: tensor<8x4xf32>, %y: tensor<4x8xf32>) -> tensor<4x8xf32> {
    %0:2 = stablehlo.while(%g = %go, %z = %y) : tensor<i1>, tensor<4x8xf32>
    cond {
      stablehlo.return %g : tensor<i1>
    } do {
      %n = stablehlo.negate %x : tensor<8x4xf32>
      %1 = stablehlo.custom_call @shardpass.redistribute(%n) {shardpass.from = "{devices=[1,2]<=[2]}", shardpass.to = "{devices=[2,1]<=[2]}", shardpass.global_type = tensor<8x8xf32>} : (tensor<8x4xf32>) -> tensor<4x8xf32>
      %2 = stablehlo.add %z, %1 : tensor<4x8xf32>
      stablehlo.return %g, %2 : tensor<i1>, tensor<4x8xf32>
    }
    return %0#1 : tensor<4x8xf32>
  }
}

// -----
// What the loop uses beside the redistribution stays, and a copy goes.
// CHECK-LABEL: module @used_twice
// CHECK: %[[N:.*]] = stablehlo.negate %arg1
// CHECK-NEXT: stablehlo.custom_call @shardpass.redistribute(%[[N]])
// CHECK-NEXT: stablehlo.while
// CHECK: stablehlo.negate %arg1
module @used_twice attributes {mhlo.num_partitions = 2 : i32} {
  func.func @main(%go: tensor<i1>, %x: tensor<8x4xf32>, %y: tensor<4x8xf32>, %v: tensor<8x4xf32>) -> (tensor<4x8xf32>, tensor<8x4xf32>) {
    %0:3 = stablehlo.while(%g = %go, %z = %y, %u = %v) : tensor<i1>, tensor<4x8xf32>, tensor<8x4xf32>
    cond {
      stablehlo.return %g : tensor<i1>
    } do {
      %n = stablehlo.negate %x : tensor<8x4xf32>
      %1 = stablehlo.custom_call @shardpass.redistribute(%n) {shardpass.from = "{devices=[1,2]<=[2]}", shardpass.to = "{devices=[2,1]<=[2]}", shardpass.global_type = tensor<8x8xf32>} : (tensor<8x4xf32>) -> tensor<4x8xf32>
      %2 = stablehlo.add %z, %1 : tensor<4x8xf32>
      %3 = stablehlo.add %u, %n : tensor<8x4xf32>
      stablehlo.return %g, %2, %3 : tensor<i1>, tensor<4x8xf32>, tensor<8x4xf32>
    }
    return %0#1, %0#2 : tensor<4x8xf32>, tensor<8x4xf32>
  }
}

// -----
// A carried value that changes stays, and so does what is made of it.
// CHECK-LABEL: module @changes
// CHECK: stablehlo.while
// CHECK: } do {
// CHECK: stablehlo.custom_call @shardpass.redistribute
module @changes attributes {mhlo.num_partitions = 2 : i32} {
  func.func @main(%go: tensor<i1>, %x: tensor<8x4xf32>, %y: tensor<4x8xf32>) -> tensor<4x8xf32> {
    %0:3 = stablehlo.while(%g = %go, %c = %x, %z = %y) : tensor<i1>, tensor<8x4xf32>, tensor<4x8xf32>
    cond {
      stablehlo.return %g : tensor<i1>
    } do {
      %n = stablehlo.negate %c : tensor<8x4xf32>
      %1 = stablehlo.custom_call @shardpass.redistribute(%n) {shardpass.from = "{devices=[1,2]<=[2]}", shardpass.to = "{devices=[2,1]<=[2]}", shardpass.global_type = tensor<8x8xf32>} : (tensor<8x4xf32>) -> tensor<4x8xf32>
      %2 = stablehlo.add %z, %1 : tensor<4x8xf32>
      stablehlo.return %g, %n, %2 : tensor<i1>, tensor<8x4xf32>, tensor<4x8xf32>
    }
    return %0#2 : tensor<4x8xf32>
  }
}

// -----
// Two values that the loop exchanges change, though each comes back.
// CHECK-LABEL: module @exchanged
// CHECK: stablehlo.while
// CHECK: } do {
// CHECK: stablehlo.custom_call @shardpass.redistribute
module @exchanged attributes {mhlo.num_partitions = 2 : i32} {
  func.func @main(%go: tensor<i1>, %x: tensor<8x4xf32>, %x2: tensor<8x4xf32>, %y: tensor<4x8xf32>) -> tensor<4x8xf32> {
    %0:4 = stablehlo.while(%g = %go, %c = %x, %d = %x2, %z = %y) : tensor<i1>, tensor<8x4xf32>, tensor<8x4xf32>, tensor<4x8xf32>
    cond {
      stablehlo.return %g : tensor<i1>
    } do {
      %1 = stablehlo.custom_call @shardpass.redistribute(%c) {shardpass.from = "{devices=[1,2]<=[2]}", shardpass.to = "{devices=[2,1]<=[2]}", shardpass.global_type = tensor<8x8xf32>} : (tensor<8x4xf32>) -> tensor<4x8xf32>
      %2 = stablehlo.add %z, %1 : tensor<4x8xf32>
      stablehlo.return %g, %d, %c, %2 : tensor<i1>, tensor<8x4xf32>, tensor<8x4xf32>, tensor<4x8xf32>
    }
    return %0#3 : tensor<4x8xf32>
  }
}

// -----
// Out of both loops.
// CHECK-LABEL: module @nested
// CHECK: stablehlo.custom_call @shardpass.redistribute(%arg1)
// CHECK: stablehlo.while
// CHECK-NOT: shardpass.redistribute
module @nested attributes {mhlo.num_partitions = 2 : i32} {
  func.func @main(%go: tensor<i1>, %x: tensor<8x4xf32>, %y: tensor<4x8xf32>) -> tensor<4x8xf32> {
    %0:3 = stablehlo.while(%g = %go, %c = %x, %z = %y) : tensor<i1>, tensor<8x4xf32>, tensor<4x8xf32>
    cond {
      stablehlo.return %g : tensor<i1>
    } do {
      %1:3 = stablehlo.while(%h = %g, %d = %c, %w = %z) : tensor<i1>, tensor<8x4xf32>, tensor<4x8xf32>
      cond {
        stablehlo.return %h : tensor<i1>
      } do {
        %2 = stablehlo.custom_call @shardpass.redistribute(%d) {shardpass.from = "{devices=[1,2]<=[2]}", shardpass.to = "{devices=[2,1]<=[2]}", shardpass.global_type = tensor<8x8xf32>} : (tensor<8x4xf32>) -> tensor<4x8xf32>
        %3 = stablehlo.add %w, %2 : tensor<4x8xf32>
        stablehlo.return %h, %d, %3 : tensor<i1>, tensor<8x4xf32>, tensor<4x8xf32>
      }
      stablehlo.return %g, %c, %1#2 : tensor<i1>, tensor<8x4xf32>, tensor<4x8xf32>
    }
    return %0#2 : tensor<4x8xf32>
  }
}

// -----
// Only one of two branches wants it: it is not done where it may not be needed.
// CHECK-LABEL: module @in_a_branch
// CHECK: stablehlo.while
// CHECK: "stablehlo.if"
// CHECK: stablehlo.custom_call @shardpass.redistribute
module @in_a_branch attributes {mhlo.num_partitions = 2 : i32} {
  func.func @main(%go: tensor<i1>, %x: tensor<8x4xf32>, %y: tensor<4x8xf32>) -> tensor<4x8xf32> {
    %0:2 = stablehlo.while(%g = %go, %z = %y) : tensor<i1>, tensor<4x8xf32>
    cond {
      stablehlo.return %g : tensor<i1>
    } do {
      %1 = "stablehlo.if"(%g) ({
        %2 = stablehlo.custom_call @shardpass.redistribute(%x) {shardpass.from = "{devices=[1,2]<=[2]}", shardpass.to = "{devices=[2,1]<=[2]}", shardpass.global_type = tensor<8x8xf32>} : (tensor<8x4xf32>) -> tensor<4x8xf32>
        stablehlo.return %2 : tensor<4x8xf32>
      }, {
        stablehlo.return %z : tensor<4x8xf32>
      }) : (tensor<i1>) -> tensor<4x8xf32>
      stablehlo.return %g, %1 : tensor<i1>, tensor<4x8xf32>
    }
    return %0#1 : tensor<4x8xf32>
  }
}

// -----
// A redistribution of what is redistributed: both leave, in their order. What two of them need is copied for the first;
// cse makes one of it.
// CHECK-LABEL: module @one_after_the_other
// CHECK: %[[N:.*]] = stablehlo.negate %arg1
// CHECK-NEXT: %[[A:.*]] = stablehlo.custom_call @shardpass.redistribute(%[[N]])
// CHECK-NEXT: %[[B:.*]] = stablehlo.abs %[[A]]
// CHECK-NEXT: stablehlo.custom_call @shardpass.redistribute(%[[B]])
// CHECK-NEXT: %[[N2:.*]] = stablehlo.negate %arg1
// CHECK-NEXT: stablehlo.custom_call @shardpass.redistribute(%[[N2]])
// CHECK-NEXT: stablehlo.while
module @one_after_the_other attributes {mhlo.num_partitions = 2 : i32} {
  func.func @main(%go: tensor<i1>, %x: tensor<8x4xf32>, %y: tensor<4x8xf32>, %v: tensor<8x4xf32>) -> (tensor<4x8xf32>, tensor<8x4xf32>) {
    %0:3 = stablehlo.while(%g = %go, %z = %y, %u = %v) : tensor<i1>, tensor<4x8xf32>, tensor<8x4xf32>
    cond {
      stablehlo.return %g : tensor<i1>
    } do {
      %n = stablehlo.negate %x : tensor<8x4xf32>
      %1 = stablehlo.custom_call @shardpass.redistribute(%n) {shardpass.from = "{devices=[1,2]<=[2]}", shardpass.to = "{devices=[2,1]<=[2]}", shardpass.global_type = tensor<8x8xf32>} : (tensor<8x4xf32>) -> tensor<4x8xf32>
      %2 = stablehlo.abs %1 : tensor<4x8xf32>
      %3 = stablehlo.custom_call @shardpass.redistribute(%2) {shardpass.from = "{devices=[2,1]<=[2]}", shardpass.to = "{devices=[1,2]<=[2]}", shardpass.global_type = tensor<8x8xf32>} : (tensor<4x8xf32>) -> tensor<8x4xf32>
      %4 = stablehlo.custom_call @shardpass.redistribute(%n) {shardpass.from = "{devices=[1,2]<=[2]}", shardpass.to = "{devices=[2,1]<=[2]}", shardpass.global_type = tensor<8x8xf32>} : (tensor<8x4xf32>) -> tensor<4x8xf32>
      %5 = stablehlo.add %z, %4 : tensor<4x8xf32>
      %6 = stablehlo.add %u, %3 : tensor<8x4xf32>
      stablehlo.return %g, %5, %6 : tensor<i1>, tensor<4x8xf32>, tensor<8x4xf32>
    }
    return %0#1, %0#2 : tensor<4x8xf32>, tensor<8x4xf32>
  }
}
