// The triangle stands on the left: a batch and the columns of the right-hand side are split, the triangle is taken
// whole.
// RUN: shardpass-opt %s partition | FileCheck %s
// RUN: shardpass-run %s partition --devices 4 --check

// On a 2x2 mesh, batch over the major axis (4 of 8), columns over the minor one (4 of 8).
// CHECK-LABEL: func.func @main(
// CHECK-NEXT: "stablehlo.triangular_solve"(%arg0, %arg1)
// CHECK-SAME: (tensor<4x3x3xf32>, tensor<4x3x4xf32>) -> tensor<4x3x4xf32>
// CHECK-NEXT: return
module attributes {mhlo.num_partitions = 4 : i32} {
  func.func @main(%a: tensor<8x3x3xf32> {mhlo.sharding = "{devices=[2,1,1,2]<=[4] last_tile_dim_replicate}"},
      %b: tensor<8x3x8xf32> {mhlo.sharding = "{devices=[2,1,2]<=[4]}"}) -> tensor<8x3x8xf32> {
    %0 = "stablehlo.triangular_solve"(%a, %b) <{left_side = true, lower = true,
        transpose_a = #stablehlo<transpose NO_TRANSPOSE>, unit_diagonal = true}>
        : (tensor<8x3x3xf32>, tensor<8x3x8xf32>) -> tensor<8x3x8xf32>
    return %0 : tensor<8x3x8xf32>
  }
}
