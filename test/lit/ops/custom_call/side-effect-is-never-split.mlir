// A call with a side effect would act once for each tile. So it is computed whole, though it says that its first
// dimension is a batch.
// RUN: shardpass-opt %s partition --verify-diagnostics | FileCheck %s

// A device lacks 6 rows of 6 numbers of 4 bytes: 144.
// CHECK-LABEL: func.func @main(
// CHECK: %[[WHOLE:.*]] = "stablehlo.all_gather"(%arg0)
// CHECK-SAME: (tensor<2x6xf32>) -> tensor<8x6xf32>
// CHECK: stablehlo.custom_call @print_rows(%[[WHOLE]])
// CHECK-NOT: channel_handle
module attributes {mhlo.num_partitions = 4 : i32} {
  func.func @main(%x: tensor<8x6xf32> {mhlo.sharding = "{devices=[4,1]<=[4]}"}) -> tensor<8x6xf32> {
    // expected-remark@below {{; 144 bytes are gathered for it on each device [SP301]}}
    %0 = stablehlo.custom_call @print_rows(%x) {has_side_effect = true,
        mhlo.frontend_attributes = {num_batch_dims = "1"}} : (tensor<8x6xf32>) -> tensor<8x6xf32>
    return %0 : tensor<8x6xf32>
  }
}
