// Along a split dimension each device counts from its own offset: device d starts at 4 * d.
// RUN: shardpass-opt %s partition | FileCheck %s
// RUN: shardpass-run %s partition --devices 2 --check

// CHECK-LABEL: func.func @main()
// CHECK-DAG: %[[LOCAL:.*]] = stablehlo.iota dim = 0 : tensor<4x3xi32>
// CHECK-DAG: %[[ID:.*]] = stablehlo.partition_id {{.*}} : tensor<ui32>
// CHECK-DAG: %[[DEVICE:.*]] = stablehlo.convert %[[ID]] : (tensor<ui32>) -> tensor<i32>
// CHECK-DAG: %[[FOUR:.*]] = stablehlo.constant dense<4> : tensor<i32>
// CHECK: %[[START:.*]] = stablehlo.multiply %[[DEVICE]], %[[FOUR]] : tensor<i32>
// CHECK: %[[SHIFT:.*]] = stablehlo.broadcast_in_dim %[[START]]
// CHECK: stablehlo.add %[[LOCAL]], %[[SHIFT]] : tensor<4x3xi32>
// CHECK-NOT: channel_handle
module attributes {mhlo.num_partitions = 2 : i32} {
  func.func @main() -> (tensor<8x3xi32> {mhlo.sharding = "{devices=[2,1]<=[2]}"}) {
    %0 = stablehlo.iota dim = 0 : tensor<8x3xi32>
    return %0 : tensor<8x3xi32>
  }
}
