// A batch of matrices: each device decomposes its own, with the layouts that the call was written with.
// RUN: shardpass-opt %s partition | FileCheck %s
// RUN: shardpass-run %s partition --devices 4 --check

// CHECK-LABEL: func.func @main(
// CHECK: stablehlo.custom_call @lapack_spotrf_ffi
// CHECK-SAME: operand_layouts = [dense<[1, 2, 0]> : tensor<3xindex>]
// CHECK-NOT: sdy.sharding_rule
// CHECK-SAME: (tensor<2x4x4xf32>) -> (tensor<2x4x4xf32>, tensor<2xi32>)
// CHECK-NOT: stablehlo.all
module attributes {mhlo.num_partitions = 4 : i32} {
  func.func @main(%a: tensor<8x4x4xf32> {mhlo.sharding = "{devices=[4,1,1]<=[4]}"})
      -> (tensor<8x4x4xf32> {mhlo.sharding = "{devices=[4,1,1]<=[4]}"}) {
    %0:2 = stablehlo.custom_call @lapack_spotrf_ffi(%a) {backend_config = "", mhlo.backend_config = {uplo = 76 : ui8},
        mhlo.frontend_attributes = {num_batch_dims = "1"}, operand_layouts = [dense<[1, 2, 0]> : tensor<3xindex>],
        result_layouts = [dense<[1, 2, 0]> : tensor<3xindex>, dense<0> : tensor<1xindex>],
        sdy.sharding_rule = #sdy.op_sharding_rule<([i, j, k])->([i, l, m], [i]) {i=8, j=4, k=4, l=4, m=4}, custom>}
        : (tensor<8x4x4xf32>) -> (tensor<8x4x4xf32>, tensor<8xi32>)
    return %0#0 : tensor<8x4x4xf32>
  }
}
