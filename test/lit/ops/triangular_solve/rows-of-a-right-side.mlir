// The triangle stands on the right: each row of the other matrix is a problem of its own, so rows are split.
// RUN: shardpass-opt %s partition | FileCheck %s
// RUN: shardpass-run %s partition --devices 4 --check

// CHECK-LABEL: func.func @main(
// CHECK-NEXT: "stablehlo.triangular_solve"(%arg0, %arg1)
// CHECK-SAME: (tensor<3x3xf32>, tensor<2x3xf32>) -> tensor<2x3xf32>
// CHECK-NEXT: return
module attributes {mhlo.num_partitions = 4 : i32} {
  func.func @main(%a: tensor<3x3xf32>, %b: tensor<8x3xf32> {mhlo.sharding = "{devices=[4,1]<=[4]}"}) -> tensor<8x3xf32> {
    %0 = "stablehlo.triangular_solve"(%a, %b) <{left_side = false, lower = true,
        transpose_a = #stablehlo<transpose NO_TRANSPOSE>, unit_diagonal = true}>
        : (tensor<3x3xf32>, tensor<8x3xf32>) -> tensor<8x3xf32>
    return %0 : tensor<8x3xf32>
  }
}
