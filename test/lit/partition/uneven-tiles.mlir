// A dimension that does not divide has tiles of ceil(size / count); elementwise ops need no mask.
// RUN: shardpass-opt %s 'shardpass-import,shardpass-propagate,shardpass-partition' | FileCheck %s

// 7 over 4 is 2.
// CHECK-LABEL: func.func @main(
// CHECK-SAME: tensor<2x3xf32> {{{.*}}shardpass.global_type = tensor<7x3xf32>
// CHECK-NEXT: stablehlo.negate %{{.*}} : tensor<2x3xf32>
// CHECK-NEXT: return
func.func @main(%x: tensor<7x3xf32> {mhlo.sharding = "{devices=[4,1]<=[4]}"}) -> (tensor<7x3xf32> {mhlo.sharding = "{devices=[4,1]<=[4]}"}) {
  %0 = stablehlo.negate %x : tensor<7x3xf32>
  return %0 : tensor<7x3xf32>
}
