// Where the result is wanted split over the axis of the partial sums, a reduce_scatter adds and cuts at once.
// RUN: shardpass-opt %s 'shardpass-import,shardpass-propagate,shardpass-partition' | FileCheck %s
// RUN: shardpass-run %s partition --devices 2 --check

// CHECK-LABEL: func.func @main(
// CHECK-NEXT: %[[PART:.*]] = stablehlo.dot_general %{{.*}} : (tensor<8x512xf32>, tensor<512x4xf32>) -> tensor<8x4xf32>
// CHECK-NEXT: %[[SUM:.*]] = "stablehlo.reduce_scatter"(%[[PART]])
// CHECK-SAME: replica_groups = dense<{{\[\[}}0, 1]]> : tensor<1x2xi64>, scatter_dimension = 0 : i64
// CHECK: (tensor<8x4xf32>) -> tensor<4x4xf32>
// CHECK-NOT: all_reduce
// CHECK: return %[[SUM]]
func.func @main(%x: tensor<8x1024xf32> {mhlo.sharding = "{devices=[1,2]<=[2]}"},
                %y: tensor<1024x4xf32> {mhlo.sharding = "{devices=[2,1]<=[2]}"})
    -> (tensor<8x4xf32> {mhlo.sharding = "{devices=[2,1]<=[2]}"}) {
  %0 = stablehlo.dot_general %x, %y, contracting_dims = [1] x [0] : (tensor<8x1024xf32>, tensor<1024x4xf32>) -> tensor<8x4xf32>
  return %0 : tensor<8x4xf32>
}
