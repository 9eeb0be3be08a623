// Mean and variance are given, so nothing is summed: written out, every device works on its rows alone. Numbers of a
// feature (here the root of the variance) are computed before they are spread over the tile.
// RUN: shardpass-opt %s partition | FileCheck %s
// RUN: shardpass-run %s partition --devices 4 --check

// CHECK-LABEL: func.func @main(%arg0: tensor<3x5xf32>
// CHECK-NOT: channel_handle
// CHECK: stablehlo.sqrt %{{.*}} : tensor<5xf32>
// CHECK: stablehlo.divide %{{.*}} : tensor<3x5xf32>
// CHECK-NOT: batch_norm
// CHECK-NOT: channel_handle
module attributes {mhlo.num_partitions = 4 : i32} {
  func.func @main(%x: tensor<10x5xf32> {mhlo.sharding = "{devices=[4,1]<=[4]}"}, %s: tensor<5xf32>)
      -> (tensor<10x5xf32> {mhlo.sharding = "{devices=[4,1]<=[4]}"}) {
    %v = stablehlo.abs %s : tensor<5xf32>
    %0 = "stablehlo.batch_norm_inference"(%x, %s, %s, %s, %v) <{epsilon = 1.0 : f32, feature_index = 1 : i64}>
        : (tensor<10x5xf32>, tensor<5xf32>, tensor<5xf32>, tensor<5xf32>, tensor<5xf32>) -> tensor<10x5xf32>
    return %0 : tensor<10x5xf32>
  }
}
