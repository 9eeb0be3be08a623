// RUN: shardpass-opt %s import | FileCheck %s
// RUN: shardpass-opt %s partition | FileCheck %s --check-prefix=TILES

// A call that JAX gives to one device keeps the number of the device, and is made under a condition.

module {
  sdy.mesh @mesh = <["x"=4]>
  sdy.mesh @one = <[], device_ids=[2]>
  // CHECK-LABEL: @main
  // CHECK: stablehlo.custom_call @xla_ffi_python_cpu_callback(%{{.*}}) {{.*}}shardpass.once = 2 : i64
  // CHECK-NOT: maximal
  // TILES-LABEL: @main
  // TILES: %[[WHOLE:.*]] = "stablehlo.all_gather"(%arg0)
  // TILES: %[[ID:.*]] = stablehlo.partition_id
  // TILES: %[[MINE:.*]] = stablehlo.compare EQ, %[[ID]], %c
  // TILES: %[[SAID:.*]] = "stablehlo.if"(%[[MINE]]) ({
  // TILES-NEXT: stablehlo.custom_call @xla_ffi_python_cpu_callback(%[[WHOLE]])
  // TILES: "stablehlo.reduce_scatter"(%[[SAID]])
  func.func @main(%x: tensor<8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}]>}) -> (tensor<8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}]>}) {
    %0 = stablehlo.custom_call @xla_ffi_python_cpu_callback(%x) {has_side_effect = true, sdy.sharding = #sdy.sharding_per_value<[<@one, []>]>} : (tensor<8xf32>) -> tensor<8xf32>
    return %0 : tensor<8xf32>
  }
}
