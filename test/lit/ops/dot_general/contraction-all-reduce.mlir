// A split contraction leaves partial sums; where the result is wanted whole, an all_reduce adds them up.
// RUN: shardpass-opt %s 'shardpass-import,shardpass-propagate,shardpass-partition' | FileCheck %s
// RUN: shardpass-run %s partition --devices 4 --check

// Over the minor axis of 2x2: 0 with 1, 2 with 3.
// CHECK-LABEL: func.func @main(
// CHECK-NEXT: %[[PART:.*]] = stablehlo.dot_general %{{.*}}, %{{.*}}, contracting_dims = [1] x [0] : (tensor<4x512xf32>, tensor<512x4xf32>) -> tensor<4x4xf32>
// CHECK-NEXT: %[[SUM:.*]] = "stablehlo.all_reduce"(%[[PART]])
// CHECK-SAME: channel_handle = #stablehlo.channel_handle<handle = {{[1-9][0-9]*}}, type = 1>
// CHECK-SAME: replica_groups = dense<{{\[\[}}0, 1], [2, 3]]> : tensor<2x2xi64>, use_global_device_ids
// CHECK: stablehlo.add
// CHECK: shardpass.cause = "partial results of stablehlo.dot_general"
// CHECK-NEXT: return %[[SUM]]
func.func @main(%x: tensor<8x1024xf32> {mhlo.sharding = "{devices=[2,2]<=[4]}"},
                %y: tensor<1024x4xf32> {mhlo.sharding = "{devices=[2,1,2]<=[2,2]T(1,0) last_tile_dim_replicate}"})
    -> (tensor<8x4xf32> {mhlo.sharding = "{devices=[2,1,2]<=[4] last_tile_dim_replicate}"}) {
  %0 = stablehlo.dot_general %x, %y, contracting_dims = [1] x [0] : (tensor<8x1024xf32>, tensor<1024x4xf32>) -> tensor<8x4xf32>
  return %0 : tensor<8x4xf32>
}
