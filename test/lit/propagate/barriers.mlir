// Shardings pass a barrier in the direction that it allows, and in no other.
// RUN: shardpass-opt %s 'propagate{effort=0}' --split-input-file | FileCheck %s
// RUN: shardpass-opt %s 'partition{effort=0}' --split-input-file | FileCheck %s --check-prefix=LOCAL

// Forward: the result is split as the operand is.
// CHECK-LABEL: module @forward_reaches_the_result
// CHECK: stablehlo.custom_call @Sharding({{.*}}) {mhlo.sharding = "{devices=[2]<=[2]}", shardpass.barrier = "FORWARD"}
// CHECK-NEXT: stablehlo.exponential %{{.*}} {mhlo.sharding = "{devices=[2]<=[2]}"}
// LOCAL-NOT: barrier
module @forward_reaches_the_result {
  sdy.mesh @mesh = <["x"=2]>
  func.func @main(%x: tensor<8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}]>}) -> tensor<8xf32> {
    %0 = stablehlo.negate %x : tensor<8xf32>
    %1 = sdy.propagation_barrier %0 allowed_direction=FORWARD : tensor<8xf32>
    %2 = stablehlo.exponential %1 : tensor<8xf32>
    return %2 : tensor<8xf32>
  }
}

// -----

// Forward: the result's split does not reach the operand.
// CHECK-LABEL: module @forward_spares_the_operand
// CHECK: stablehlo.negate %{{.*}} {mhlo.sharding = "{replicated}"}
// CHECK: stablehlo.custom_call @Sharding({{.*}}) {mhlo.sharding = "{devices=[2]<=[2]}", shardpass.barrier = "FORWARD"}
module @forward_spares_the_operand {
  sdy.mesh @mesh = <["x"=2]>
  func.func @main(%x: tensor<8xf32>) -> (tensor<8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}]>}) {
    %0 = stablehlo.negate %x : tensor<8xf32>
    %1 = sdy.propagation_barrier %0 allowed_direction=FORWARD : tensor<8xf32>
    return %1 : tensor<8xf32>
  }
}

// -----

// Backward: the other way round.
// CHECK-LABEL: module @backward_reaches_the_operand
// CHECK: stablehlo.negate %{{.*}} {mhlo.sharding = "{devices=[2]<=[2]}"}
// CHECK: stablehlo.custom_call @Sharding({{.*}}) {mhlo.sharding = "{devices=[2]<=[2]}", shardpass.barrier = "BACKWARD"}
module @backward_reaches_the_operand {
  sdy.mesh @mesh = <["x"=2]>
  func.func @main(%x: tensor<8xf32>) -> (tensor<8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}]>}) {
    %0 = stablehlo.negate %x : tensor<8xf32>
    %1 = sdy.propagation_barrier %0 allowed_direction=BACKWARD : tensor<8xf32>
    return %1 : tensor<8xf32>
  }
}

// -----

// None: neither.
// CHECK-LABEL: module @none_reaches_neither
// CHECK: stablehlo.negate %{{.*}} {mhlo.sharding = "{devices=[2]<=[2]}"}
// CHECK: stablehlo.custom_call @Sharding({{.*}}) {mhlo.sharding = "{replicated}", shardpass.barrier = "NONE"}
// CHECK-NEXT: stablehlo.exponential %{{.*}} {mhlo.sharding = "{replicated}"}
module @none_reaches_neither {
  sdy.mesh @mesh = <["x"=2]>
  func.func @main(%x: tensor<8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}]>}) -> tensor<8xf32> {
    %0 = stablehlo.negate %x : tensor<8xf32>
    %1 = sdy.propagation_barrier %0 allowed_direction=NONE : tensor<8xf32>
    %2 = stablehlo.exponential %1 : tensor<8xf32>
    return %2 : tensor<8xf32>
  }
}
