// Two operands want one dimension split differently: the larger one has its way, as moving the smaller is cheaper.
// RUN: shardpass-opt %s propagate | FileCheck %s
// RUN: shardpass-opt %s 'shardpass-import,shardpass-propagate{verbose=true}' -o %t 2>&1 | FileCheck %s --check-prefix=WHY

// The contracting dimension is over the major axis in %big (64 x 512 x 4 = 131072 bytes) and over the minor one in
// %small (512 x 4 x 4 = 8192 bytes). Both are the user's word and stay.
// CHECK-LABEL: func.func @main(
// CHECK-SAME: %{{.*}}: tensor<64x512xf32> {mhlo.sharding = "{devices=[1,2,2]<=[4] last_tile_dim_replicate}"},
// CHECK-SAME: %{{.*}}: tensor<512x4xf32> {mhlo.sharding = "{devices=[2,1,2]<=[2,2]T(1,0) last_tile_dim_replicate}"})
// WHY: stablehlo.dot_general: split over axis_0 (131072 bytes) rather than axis_1 (8192 bytes)
func.func @main(%big: tensor<64x512xf32> {mhlo.sharding = "{devices=[1,2,2]<=[4] last_tile_dim_replicate}"},
                %small: tensor<512x4xf32> {mhlo.sharding = "{devices=[2,1,2]<=[2,2]T(1,0) last_tile_dim_replicate}"}) -> tensor<64x4xf32> {
  %0 = stablehlo.dot_general %big, %small, contracting_dims = [1] x [0] : (tensor<64x512xf32>, tensor<512x4xf32>) -> tensor<64x4xf32>
  return %0 : tensor<64x4xf32>
}
