// Over 4 devices a tile of 8 numbers has 2: device d counts 2d, 2d + 1, and nothing is sent.
// RUN: shardpass-opt %s partition | FileCheck %s

// CHECK-LABEL: func.func @main(
// CHECK: %[[ID:.*]] = stablehlo.partition_id
// CHECK: %[[DEVICE:.*]] = stablehlo.convert %[[ID]]
// CHECK: %[[START:.*]] = stablehlo.multiply %[[DEVICE]], %{{.*}} : tensor<i32>
// CHECK: %[[STARTS:.*]] = stablehlo.broadcast_in_dim %[[START]], dims = [] : (tensor<i32>) -> tensor<2xi32>
// CHECK: stablehlo.add %{{.*}}, %[[STARTS]] : tensor<2xi32>
// CHECK-NOT: stablehlo.all_
module attributes {mhlo.num_partitions = 4 : i32} {
  func.func @main() -> (tensor<8xi32> {mhlo.sharding = "{devices=[4]<=[4]}"}) {
    %0 = stablehlo.iota dim = 0 : tensor<8xi32>
    return %0 : tensor<8xi32>
  }
}
