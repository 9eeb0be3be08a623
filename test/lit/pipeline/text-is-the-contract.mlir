// Passes run one process each, with text between them, give what they give together.
// RUN: shardpass-opt %s partition -o %t.together
// RUN: shardpass-opt %s shardpass-import | shardpass-opt - shardpass-propagate | shardpass-opt - 'shardpass-check' | shardpass-opt - shardpass-partition | shardpass-opt - shardpass-redistribute | shardpass-opt - canonicalize,cse -o %t.apart
// RUN: diff %t.together %t.apart
// RUN: FileCheck %s < %t.together

// Rows of %a times columns of %b: every device has all it needs, each multiplies its tiles.
// CHECK-LABEL: func.func @main(
// CHECK-SAME: tensor<4x32xf32>
// CHECK-SAME: tensor<32x8xf32>
// CHECK-NOT: all_gather
// CHECK: stablehlo.dot_general {{.*}} -> tensor<4x8xf32>
func.func @main(%a: tensor<8x32xf32> {mhlo.sharding = "{devices=[2,1,2]<=[4] last_tile_dim_replicate}"},
                %b: tensor<32x16xf32> {mhlo.sharding = "{devices=[1,2,2]<=[2,2]T(1,0) last_tile_dim_replicate}"})
    -> (tensor<8x16xf32> {mhlo.sharding = "{devices=[2,2]<=[4]}"}) {
  %0 = stablehlo.dot_general %a, %b, contracting_dims = [1] x [0] : (tensor<8x32xf32>, tensor<32x16xf32>) -> tensor<8x16xf32>
  return %0 : tensor<8x16xf32>
}
