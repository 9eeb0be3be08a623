// With nan=exact a maximum across devices compares integers that are in the order of the floats; NaN is the greatest.
// RUN: shardpass-opt %s 'partition{nan=exact}' | FileCheck %s
// RUN: shardpass-run %s 'partition{nan=exact}' --devices 2 --check 2>&1 | FileCheck %s --check-prefix=EXACT
// RUN: shardpass-run %s partition --devices 2 --check 2>&1 | FileCheck %s --check-prefix=LOST

// CHECK-LABEL: func.func @main(
// CHECK: %[[PART:.*]] = stablehlo.reduce({{.*}}) applies stablehlo.maximum across dimensions = [1] : (tensor<4x256xf32>, tensor<f32>) -> tensor<4xf32>
// CHECK: %[[NAN:.*]] = stablehlo.compare NE, %[[PART]], %[[PART]]
// CHECK: stablehlo.bitcast_convert %[[PART]] : (tensor<4xf32>) -> tensor<4xi32>
// CHECK: stablehlo.constant dense<2143289344>
// CHECK: %[[KEY:.*]] = stablehlo.select %[[NAN]],
// CHECK: "stablehlo.all_reduce"(%[[KEY]])
// CHECK: stablehlo.maximum {{.*}} : tensor<i32>
// CHECK: shardpass.cause = "partial results of stablehlo.reduce"
// CHECK: stablehlo.bitcast_convert {{.*}} : (tensor<4xi32>) -> tensor<4xf32>

// EXACT: NaN, infinities and -0: as in the unpartitioned program on one device
// EXACT-NEXT: PASS
// EXACT-NOT: remark

// LOST: NaN, infinities and -0: SP555
// LOST-NEXT: PASS
// LOST: nan-kept.mlir: remark: XLA loses NaN in max or min across devices, so 1 of 1 results differ from the unpartitioned program: result 0 at
// LOST-SAME: in place of nan; the collectives are all_reduce over axis_0, 16 bytes at {{.*}}nan-kept.mlir:{{[0-9:]+}}: partial results of stablehlo.reduce [SP555]
// LOST-NEXT: help: add the option nan=exact
func.func @main(%x: tensor<4x512xf32> {mhlo.sharding = "{devices=[1,2]<=[2]}"}) -> (tensor<4xf32> {mhlo.sharding = "{replicated}"}) {
  %low = stablehlo.constant dense<0xFF800000> : tensor<f32>
  %0 = stablehlo.reduce(%x init: %low) applies stablehlo.maximum across dimensions = [1] : (tensor<4x512xf32>, tensor<f32>) -> tensor<4xf32>
  return %0 : tensor<4xf32>
}
