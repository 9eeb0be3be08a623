// RUN: shardpass-opt %s import | FileCheck %s
// RUN: shardpass-opt %s partition | FileCheck %s --check-prefix=TILES

// A token becomes a number: each call takes what the one before gave. No device needs to be told a 0.

module {
  sdy.mesh @mesh = <["x"=4]>
  sdy.mesh @one = <[], device_ids=[0]>
  // CHECK: shardpass.tokens = [array<i64: 0>, array<i64: 1>]
  // CHECK-LABEL: @main
  // CHECK-SAME: (%arg0: tensor<8xf32>
  // CHECK-NOT: token
  // CHECK: %[[ZERO:.*]] = stablehlo.constant dense<0> : tensor<i32>
  // CHECK: %[[FIRST:.*]] = stablehlo.custom_call @xla_ffi_python_cpu_callback(%[[ZERO]], %{{.*}}) {{.*}}shardpass.order = array<i64: 0>
  // CHECK: stablehlo.while
  // CHECK-SAME: %[[FIRST]]
  // CHECK-NOT: token
  // TILES-LABEL: @main
  // TILES: %[[ID:.*]] = stablehlo.partition_id
  // TILES: %[[FIRST:.*]] = "stablehlo.if"
  // TILES: stablehlo.custom_call @xla_ffi_python_cpu_callback
  // TILES: stablehlo.while
  // TILES-NOT: all_reduce
  func.func @main(%token: !stablehlo.token {jax.token = true}, %x: tensor<8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}]>})
      -> (tensor<8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}]>}, !stablehlo.token {jax.token = true}) {
    %zero = stablehlo.constant dense<0> : tensor<i32>
    %made = stablehlo.create_token : !stablehlo.token
    %both = stablehlo.after_all %token, %made : !stablehlo.token
    %0 = stablehlo.custom_call @xla_ffi_python_cpu_callback(%token, %zero) {has_side_effect = true, sdy.sharding = #sdy.sharding_per_value<[<@one, []>]>} : (!stablehlo.token, tensor<i32>) -> !stablehlo.token
    %1:2 = stablehlo.while(%t = %0, %i = %zero) : !stablehlo.token, tensor<i32>
    cond {
      %three = stablehlo.constant dense<3> : tensor<i32>
      %less = stablehlo.compare LT, %i, %three : (tensor<i32>, tensor<i32>) -> tensor<i1>
      stablehlo.return %less : tensor<i1>
    } do {
      %one = stablehlo.constant dense<1> : tensor<i32>
      %next = stablehlo.add %i, %one : tensor<i32>
      %2 = stablehlo.custom_call @xla_ffi_python_cpu_callback(%t, %i) {has_side_effect = true, sdy.sharding = #sdy.sharding_per_value<[<@one, []>]>} : (!stablehlo.token, tensor<i32>) -> !stablehlo.token
      stablehlo.return %2, %next : !stablehlo.token, tensor<i32>
    }
    return %x, %1#0 : tensor<8xf32>, !stablehlo.token
  }
}
