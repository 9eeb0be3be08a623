// CHLO's constant differs from StableHLO's in name only: a splat is a splat on every tile.
// RUN: shardpass-opt %s partition | FileCheck %s
// RUN: shardpass-run %s partition --devices 2 --check

// CHECK-LABEL: func.func @main()
// CHECK-NEXT: %[[SPLAT:.*]] = stablehlo.constant dense<1.000000e+00> : tensor<2x4xf32>
// CHECK-NEXT: return %[[SPLAT]]
module attributes {mhlo.num_partitions = 2 : i32} {
  func.func @main() -> (tensor<4x4xf32> {mhlo.sharding = "{devices=[2,1]<=[2]}"}) {
    %0 = chlo.constant dense<1.0> : tensor<4x4xf32>
    return %0 : tensor<4x4xf32>
  }
}
