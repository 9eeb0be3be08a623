// case 5: every slice takes the first 4 of 16 columns, and no index says otherwise. The dimension is needed whole, and
// a remark says what gathering it costs.
// RUN: shardpass-opt %s partition --verify-diagnostics | FileCheck %s
// RUN: shardpass-run %s partition --devices 4 --check

// A device lacks 8 rows of 12 columns of 4 bytes: 384.
// CHECK-LABEL: func.func @main(
// CHECK: %[[WHOLE:.*]] = "stablehlo.all_gather"(%arg0)
// CHECK-SAME: (tensor<8x4xf32>) -> tensor<8x16xf32>
// CHECK: "stablehlo.gather"(%[[WHOLE]], %arg1)
// CHECK-NOT: channel_handle
module attributes {mhlo.num_partitions = 4 : i32} {
  func.func @main(%x: tensor<8x16xf32> {mhlo.sharding = "{devices=[1,4]<=[4]}"}, %i: tensor<5x1xi32>)
      -> tensor<5x4xf32> {
    // expected-remark@below {{needs dimension 1 of its operand 0 (tensor<8x16xf32>) in full on each device; 384 bytes are gathered}}
    %0 = "stablehlo.gather"(%x, %i) <{dimension_numbers = #stablehlo.gather<offset_dims = [1],
      collapsed_slice_dims = [0], start_index_map = [0], index_vector_dim = 1>,
      slice_sizes = array<i64: 1, 4>}> : (tensor<8x16xf32>, tensor<5x1xi32>) -> tensor<5x4xf32>
    return %0 : tensor<5x4xf32>
  }
}
