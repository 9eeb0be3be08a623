// Dimensions that a constraint leaves to the compiler are kept as an attribute that propagation reads.
// RUN: shardpass-opt %s import | FileCheck %s

// CHECK-LABEL: func.func @main
// CHECK: stablehlo.custom_call @Sharding(%{{.*}}) {
// CHECK-NOT: backend_config = "unspecified
// CHECK-SAME: mhlo.sharding = "{devices=[2,1,1]<=[2]}", shardpass.unspecified_dims = array<i64: 1, 2>}
func.func @main(%x: tensor<8x4x2xf32>) -> tensor<8x4x2xf32> {
  %0 = stablehlo.custom_call @Sharding(%x) {backend_config = "unspecified_dims=[1,2]", mhlo.sharding = "{devices=[2,1,1]<=[2]}"} : (tensor<8x4x2xf32>) -> tensor<8x4x2xf32>
  return %0 : tensor<8x4x2xf32>
}
