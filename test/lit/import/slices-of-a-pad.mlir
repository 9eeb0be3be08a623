// A stencil by slices of a padded array: each slice is a pad of its own, as long as the array and shifted in it, so that
// one row crosses each border. The slice that takes no padding is the array itself.
// RUN: shardpass-opt %s import | FileCheck %s
// RUN: shardpass-opt %s "partition{effort=0}" | FileCheck %s --check-prefix=LOCAL

// CHECK-LABEL: func.func @main(
// CHECK-SAME: %[[X:[^:]*]]: tensor<8x4xf32>
// CHECK-NOT: tensor<10x4xf32>
// CHECK: %[[UP:.*]] = stablehlo.pad %[[X]], %{{.*}}, low = [1, 0], high = [-1, 0]
// CHECK: %[[DOWN:.*]] = stablehlo.pad %[[X]], %{{.*}}, low = [-1, 0], high = [1, 0]
// CHECK: %[[BOTH:.*]] = stablehlo.add %[[UP]], %[[DOWN]]
// CHECK: stablehlo.subtract %[[BOTH]], %[[X]]

// LOCAL-COUNT-2: (tensor<1x4xf32>) -> tensor<1x4xf32>
// LOCAL-NOT: stablehlo.select
module attributes {mhlo.num_partitions = 4 : i32} {
  func.func @main(%x: tensor<8x4xf32> {mhlo.sharding = "{devices=[4,1]<=[4]}"})
      -> (tensor<8x4xf32> {mhlo.sharding = "{devices=[4,1]<=[4]}"}) {
    %zero = stablehlo.constant dense<0.0> : tensor<f32>
    %p = stablehlo.pad %x, %zero, low = [1, 0], high = [1, 0], interior = [0, 0]
        : (tensor<8x4xf32>, tensor<f32>) -> tensor<10x4xf32>
    %up = stablehlo.slice %p [0:8, 0:4] : (tensor<10x4xf32>) -> tensor<8x4xf32>
    %down = stablehlo.slice %p [2:10, 0:4] : (tensor<10x4xf32>) -> tensor<8x4xf32>
    %both = stablehlo.add %up, %down : tensor<8x4xf32>
    %middle = stablehlo.slice %p [1:9, 0:4] : (tensor<10x4xf32>) -> tensor<8x4xf32>
    %0 = stablehlo.subtract %both, %middle : tensor<8x4xf32>
    return %0 : tensor<8x4xf32>
  }
}
