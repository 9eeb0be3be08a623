// A named computation is its body, whose borders are constrained as it says; a constant of SDY is one of StableHLO; an
// edge of data flow is a constraint where it has a sharding.
// RUN: shardpass-opt %s import --split-input-file | FileCheck %s
// RUN: shardpass-opt %s partition --split-input-file

module @nested_named_computations {
  sdy.mesh @mesh = <["a"=2, "b"=2]>

  // CHECK-LABEL: module @nested_named_computations
  // CHECK: @main(%arg0: tensor<8x2xi32>)
  // CHECK-NEXT: %[[IN:.*]] = stablehlo.custom_call @Sharding(%arg0) {mhlo.sharding = "{devices=[2,1,2]<=[2,2]T(1,0) last_tile_dim_replicate}"}
  // CHECK-NEXT: %[[INNER:.*]] = stablehlo.negate %[[IN]]
  // CHECK-NEXT: %[[OUT:.*]] = stablehlo.custom_call @Sharding(%[[INNER]]) {mhlo.sharding = "{devices=[2,1,2]<=[4] last_tile_dim_replicate}", shardpass.unspecified_dims = array<i64: 1>}
  // CHECK-NEXT: %[[LAST:.*]] = stablehlo.add %[[OUT]], %[[OUT]]
  // CHECK-NEXT: return %[[LAST]]
  func.func @main(%x: tensor<8x2xi32>) -> tensor<8x2xi32> {
    %0 = sdy.named_computation<"outer">(%x) in_shardings=[<@mesh, [{"b"}, {}]>] out_shardings=[<@mesh, [{"a"}, {?}]>] (%y: tensor<8x2xi32>) {
      %1 = sdy.named_computation<"inner">(%y) (%z: tensor<8x2xi32>) {
        %2 = stablehlo.negate %z : tensor<8x2xi32>
        sdy.return %2 : tensor<8x2xi32>
      } : (tensor<8x2xi32>) -> tensor<8x2xi32>
      sdy.return %1 : tensor<8x2xi32>
    } : (tensor<8x2xi32>) -> tensor<8x2xi32>
    %1 = stablehlo.add %0, %0 : tensor<8x2xi32>
    return %1 : tensor<8x2xi32>
  }
}

// -----

module @sdy_constants {
  sdy.mesh @mesh = <["a"=2, "b"=2]>

  // CHECK-LABEL: module @sdy_constants
  // CHECK-DAG: stablehlo.constant {mhlo.sharding = "{devices=[2,2]<=[4]}", shardpass.pinned} dense<2> : tensor<8x4xi32>
  // CHECK-DAG: stablehlo.constant dense<(1.000000e+00,2.000000e+00)> : tensor<8xcomplex<f32>>
  func.func @main() -> (tensor<8x4xi32>, tensor<8xcomplex<f32>>) {
    %0 = sdy.constant {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"a"}, {"b"}]>]>} dense<2> : tensor<8x4xi32>
    %1 = sdy.constant dense<(1.0, 2.0)> : tensor<8xcomplex<f32>>
    return %0, %1 : tensor<8x4xi32>, tensor<8xcomplex<f32>>
  }
}

// -----

module @data_flow_edges_of_a_loop {
  sdy.mesh @mesh = <["a"=2, "b"=2]>

  // CHECK-LABEL: module @data_flow_edges_of_a_loop
  // CHECK: %[[LOOP:.*]]:2 = stablehlo.while
  // CHECK-SAME: (%[[CARRIED:.*]] = %arg0, %{{.*}} = %{{.*}})
  // CHECK: do {
  // CHECK-NEXT: %[[EDGE:.*]] = stablehlo.custom_call @Sharding(%[[CARRIED]]) {mhlo.sharding = "{devices=[2,1,2]<=[4] last_tile_dim_replicate}"
  // CHECK: stablehlo.add %[[EDGE]], %[[EDGE]]
  // CHECK: return %[[LOOP]]#0
  func.func @main(%x: tensor<8x4xi32>) -> tensor<8x4xi32> {
    %n = stablehlo.constant dense<4> : tensor<i32>
    %one = stablehlo.constant dense<1> : tensor<i32>
    %0:2 = stablehlo.while(%y = %x, %i = %n) : tensor<8x4xi32>, tensor<i32> cond {
      %go = stablehlo.compare GT, %i, %one : (tensor<i32>, tensor<i32>) -> tensor<i1>
      stablehlo.return %go : tensor<i1>
    } do {
      %edge = sdy.data_flow_edge %y sharding=<@mesh, [{"a"}, {?}]> : tensor<8x4xi32>
      %next = stablehlo.add %edge, %edge : tensor<8x4xi32>
      %less = stablehlo.subtract %i, %one : tensor<i32>
      stablehlo.return %next, %less : tensor<8x4xi32>, tensor<i32>
    }
    %last = sdy.data_flow_edge %0#0 : tensor<8x4xi32>
    return %last : tensor<8x4xi32>
  }
}

// -----

module @inside_manual_regions {
  sdy.mesh @mesh = <["a"=2, "b"=2]>

  // In a region that is manual over a, the borders say the free axes alone; where all axes are manual, nothing.
  // CHECK-LABEL: module @inside_manual_regions
  // CHECK: stablehlo.custom_call @Sharding({{.*}}) {mhlo.sharding = "{devices=[1,2,2]<=[2,2]T(1,0) last_tile_dims={manual}}", shardpass.manual =
  // CHECK-NEXT: stablehlo.negate %{{.*}} {shardpass.manual =
  // CHECK-NOT: @Sharding({{.*}}) {{.*}}manual{{.*}} tensor<4x2xi32>
  // CHECK: stablehlo.abs {{.*}} {mhlo.sharding = "{manual}"} : tensor<4x2xi32>
  func.func @main(%x: tensor<8x4xi32>) -> (tensor<8x4xi32>, tensor<8x4xi32>) {
    %0 = sdy.manual_computation(%x) in_shardings=[<@mesh, [{"a"}, {}]>] out_shardings=[<@mesh, [{"a"}, {}]>] manual_axes={"a"} (%y: tensor<4x4xi32>) {
      %1 = sdy.named_computation<"f">(%y) in_shardings=[<@mesh, [{}, {"b"}]>] (%z: tensor<4x4xi32>) {
        %2 = stablehlo.negate %z : tensor<4x4xi32>
        sdy.return %2 : tensor<4x4xi32>
      } : (tensor<4x4xi32>) -> tensor<4x4xi32>
      sdy.return %1 : tensor<4x4xi32>
    } : (tensor<8x4xi32>) -> tensor<8x4xi32>
    %3 = sdy.manual_computation(%x) in_shardings=[<@mesh, [{"a"}, {"b"}]>] out_shardings=[<@mesh, [{"a"}, {"b"}]>] manual_axes={"a", "b"} (%y: tensor<4x2xi32>) {
      %4 = sdy.named_computation<"g">(%y) in_shardings=[<@mesh, [{}, {}]>] (%z: tensor<4x2xi32>) {
        %5 = stablehlo.abs %z : tensor<4x2xi32>
        sdy.return %5 : tensor<4x2xi32>
      } : (tensor<4x2xi32>) -> tensor<4x2xi32>
      sdy.return %4 : tensor<4x2xi32>
    } : (tensor<8x4xi32>) -> tensor<8x4xi32>
    return %0, %3 : tensor<8x4xi32>, tensor<8x4xi32>
  }
}
