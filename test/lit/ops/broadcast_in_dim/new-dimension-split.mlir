// A dimension that the broadcast makes may be split over any axis: every device makes its part from what it holds.
// RUN: shardpass-opt %s partition | FileCheck %s
// RUN: shardpass-run %s partition --devices 4 --check

// On a 2x2 mesh the operand is split over the major axis, the new dimension over the minor one.
// CHECK-LABEL: func.func @main(
// CHECK-NEXT: stablehlo.broadcast_in_dim %arg0, dims = [1] : (tensor<4xf32>) -> tensor<3x4xf32>
// CHECK-NEXT: return
module attributes {mhlo.num_partitions = 4 : i32} {
  func.func @main(%x: tensor<8xf32> {mhlo.sharding = "{devices=[2,2]<=[4] last_tile_dim_replicate}"})
      -> (tensor<6x8xf32> {mhlo.sharding = "{devices=[2,2]<=[2,2]T(1,0)}"}) {
    %0 = stablehlo.broadcast_in_dim %x, dims = [1] : (tensor<8xf32>) -> tensor<6x8xf32>
    return %0 : tensor<6x8xf32>
  }
}
