// Along a split dimension each device counts from its own offset; along another one all count alike.
// RUN: shardpass-opt %s 'shardpass-import,shardpass-propagate,shardpass-partition' --split-input-file | FileCheck %s

// Device d starts at 4 * d.
// CHECK-LABEL: func.func @main()
// CHECK-DAG: %[[LOCAL:.*]] = stablehlo.iota dim = 0 : tensor<4x3xi32>
// CHECK-DAG: %[[ID:.*]] = stablehlo.partition_id : tensor<ui32>
// CHECK-DAG: %[[DEVICE:.*]] = stablehlo.convert %[[ID]] : (tensor<ui32>) -> tensor<i32>
// CHECK-DAG: %[[FOUR:.*]] = stablehlo.constant dense<4> : tensor<i32>
// CHECK: %[[START:.*]] = stablehlo.multiply %[[DEVICE]], %[[FOUR]] : tensor<i32>
// CHECK: %[[SHIFT:.*]] = stablehlo.broadcast_in_dim %[[START]]
// CHECK: stablehlo.add %[[LOCAL]], %[[SHIFT]] : tensor<4x3xi32>
func.func @main() -> (tensor<8x3xi32> {mhlo.sharding = "{devices=[2,1]<=[2]}"}) {
  %0 = stablehlo.iota dim = 0 : tensor<8x3xi32>
  return %0 : tensor<8x3xi32>
}

// -----

// CHECK-LABEL: func.func @main()
// CHECK-NEXT: %[[LOCAL:.*]] = stablehlo.iota dim = 1 : tensor<4x3xi32>
// CHECK-NEXT: return %[[LOCAL]]
func.func @main() -> (tensor<8x3xi32> {mhlo.sharding = "{devices=[2,1]<=[2]}"}) {
  %0 = stablehlo.iota dim = 1 : tensor<8x3xi32>
  return %0 : tensor<8x3xi32>
}
