// A call with a side effect would act once for each tile. So one device makes it, on the whole array, though it says
// that its first dimension is a batch; the others get the result by a sum with their zeros.
// RUN: shardpass-opt %s partition | FileCheck %s

// CHECK-LABEL: func.func @main(
// CHECK: %[[WHOLE:.*]] = "stablehlo.all_gather"(%arg0)
// CHECK-SAME: (tensor<2x6xf32>) -> tensor<8x6xf32>
// CHECK: %[[ID:.*]] = stablehlo.partition_id
// CHECK: stablehlo.compare EQ, %[[ID]], %c
// CHECK: "stablehlo.if"
// CHECK-NEXT: stablehlo.custom_call @print_rows(%[[WHOLE]])
// CHECK: "stablehlo.all_reduce"
module attributes {mhlo.num_partitions = 4 : i32} {
  func.func @main(%x: tensor<8x6xf32> {mhlo.sharding = "{devices=[4,1]<=[4]}"}) -> tensor<8x6xf32> {
    %0 = stablehlo.custom_call @print_rows(%x) {has_side_effect = true,
        mhlo.frontend_attributes = {num_batch_dims = "1"}} : (tensor<8x6xf32>) -> tensor<8x6xf32>
    return %0 : tensor<8x6xf32>
  }
}
