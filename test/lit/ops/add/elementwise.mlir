// Elementwise ops work on tiles; nothing moves, and no sharding is left on any op.
// RUN: shardpass-opt %s 'shardpass-import,shardpass-propagate,shardpass-partition' | FileCheck %s
// RUN: shardpass-run %s partition --devices 4 --check

// CHECK-LABEL: func.func @main(
// CHECK-SAME: %[[X:[^:]*]]: tensor<4x2xf32> {mhlo.sharding = "{manual}", shardpass.global_type = tensor<8x4xf32>, shardpass.sharding = "{devices=[2,2]<=[4]}"}
// CHECK-SAME: -> (tensor<4x2xf32> {mhlo.sharding = "{manual}", shardpass.global_type = tensor<8x4xf32>, shardpass.sharding = "{devices=[2,2]<=[4]}"})
// CHECK-NEXT: %[[NEG:.*]] = stablehlo.negate %[[X]] : tensor<4x2xf32>
// CHECK-NEXT: %[[SUM:.*]] = stablehlo.add %[[X]], %[[NEG]] : tensor<4x2xf32>
// CHECK-NEXT: return %[[SUM]] : tensor<4x2xf32>
func.func @main(%x: tensor<8x4xf32> {mhlo.sharding = "{devices=[2,2]<=[4]}"}) -> tensor<8x4xf32> {
  %0 = stablehlo.negate %x : tensor<8x4xf32>
  %1 = stablehlo.add %x, %0 : tensor<8x4xf32>
  return %1 : tensor<8x4xf32>
}
