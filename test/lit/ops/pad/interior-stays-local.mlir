// One element between neighbours and one behind the last: 8 rows become 16, and each tile of 2 rows becomes exactly the
// tile of 4 rows that the device holds of the result.
// RUN: shardpass-opt %s partition | FileCheck %s
// RUN: shardpass-run %s partition --devices 4 --check

// CHECK-LABEL: func.func @main(
// CHECK-NEXT: stablehlo.pad %arg0, %arg1, low = [0, 0], high = [1, 0], interior = [1, 0]
// CHECK-SAME: (tensor<2x3xf32>, tensor<f32>) -> tensor<4x3xf32>
// CHECK-NEXT: return
module attributes {mhlo.num_partitions = 4 : i32} {
  func.func @main(%x: tensor<8x3xf32> {mhlo.sharding = "{devices=[4,1]<=[4]}"}, %v: tensor<f32>)
      -> (tensor<16x3xf32> {mhlo.sharding = "{devices=[4,1]<=[4]}"}) {
    %0 = stablehlo.pad %x, %v, low = [0, 0], high = [1, 0], interior = [1, 0]
      : (tensor<8x3xf32>, tensor<f32>) -> tensor<16x3xf32>
    return %0 : tensor<16x3xf32>
  }
}
