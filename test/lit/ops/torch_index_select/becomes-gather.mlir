// An op of old becomes the one that took its place, in import; the sharding on it becomes a constraint.
// RUN: shardpass-opt %s import | FileCheck %s

// CHECK-LABEL: func.func @main(
// CHECK: "stablehlo.gather"(%arg0, %arg1)
// CHECK-SAME: offset_dims = [0], collapsed_slice_dims = [1], start_index_map = [1], index_vector_dim = 1
// CHECK-SAME: slice_sizes = array<i64: 4, 1>
// CHECK-SAME: (tensor<4x9xf32>, tensor<6xi32>) -> tensor<4x6xf32>
// CHECK-NEXT: stablehlo.custom_call @Sharding({{.*}}) {mhlo.sharding = "{devices=[2,1]<=[2]}"}
module attributes {mhlo.num_partitions = 2 : i32} {
  func.func @main(%x: tensor<4x9xf32>, %i: tensor<6xi32>) -> tensor<4x6xf32> {
    %0 = "stablehlo.torch_index_select"(%x, %i) <{batch_dims = 0 : i64, dim = 1 : i64}>
        {mhlo.sharding = "{devices=[2,1]<=[2]}"} : (tensor<4x9xf32>, tensor<6xi32>) -> tensor<4x6xf32>
    return %0 : tensor<4x6xf32>
  }
}
