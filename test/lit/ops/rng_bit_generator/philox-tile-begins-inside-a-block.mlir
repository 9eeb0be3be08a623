// Tiles of 3 rows of 3 words begin at words 0, 9, 18 and 27: inside of a block of 4 words on all devices but the first.
// Each device makes 3 blocks from the one in which its tile begins, 12 words, and cuts its 9 out.
// RUN: shardpass-opt %s partition | FileCheck %s
// RUN: shardpass-run %s partition --devices 4 --check

// CHECK-LABEL: func.func @main(
// CHECK-NOT: channel_handle
// CHECK: stablehlo.rng_bit_generator %{{.*}}, algorithm = PHILOX : (tensor<3xui64>) -> (tensor<3xui64>, tensor<12xui32>)
// CHECK: stablehlo.dynamic_slice {{.*}} sizes = [9]
// CHECK: stablehlo.reshape %{{.*}} : (tensor<9xui32>) -> tensor<3x3xui32>
// CHECK-NOT: channel_handle
module attributes {mhlo.num_partitions = 4 : i32} {
  func.func @main(%s: tensor<2xui64>) -> (tensor<12x3xui32> {mhlo.sharding = "{devices=[4,1]<=[4]}"}) {
    %0, %1 = stablehlo.rng_bit_generator %s, algorithm = PHILOX : (tensor<2xui64>) -> (tensor<2xui64>, tensor<12x3xui32>)
    return %1 : tensor<12x3xui32>
  }
}
