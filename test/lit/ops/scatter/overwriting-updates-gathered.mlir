// Split updates that overwrite have an order, which parts on several devices would lose: indices and updates are
// gathered, in one collective. The operand is not summed.
// RUN: shardpass-opt %s "partition{effort=0}" | FileCheck %s
// RUN: shardpass-run %s "partition{effort=0}" --devices 4 --check

// 12 updates over 4 devices are 3 positions and 3 values a device, side by side: 6 words of 32 bits.
// CHECK-LABEL: func.func @main(
// CHECK: "stablehlo.all_gather"
// CHECK-SAME: (tensor<1x6xui32>) -> tensor<4x6xui32>
// CHECK-NOT: channel_handle
// CHECK: "stablehlo.scatter"(%arg0
// CHECK: (tensor<8xf32>, tensor<12x1xi32>, tensor<12xf32>) -> tensor<8xf32>
// CHECK-NOT: channel_handle
module attributes {mhlo.num_partitions = 4 : i32} {
  func.func @main(%x: tensor<8xf32>, %i: tensor<12x1xi32> {mhlo.sharding = "{devices=[4,1]<=[4]}"},
      %u: tensor<12xf32> {mhlo.sharding = "{devices=[4]<=[4]}"}) -> tensor<8xf32> {
    %0 = "stablehlo.scatter"(%x, %i, %u) <{scatter_dimension_numbers = #stablehlo.scatter<
      inserted_window_dims = [0], scatter_dims_to_operand_dims = [0], index_vector_dim = 1>}> ({
      ^bb0(%old: tensor<f32>, %new: tensor<f32>):
        stablehlo.return %new : tensor<f32>
    }) : (tensor<8xf32>, tensor<12x1xi32>, tensor<12xf32>) -> tensor<8xf32>
    return %0 : tensor<8xf32>
  }
}
