// MLIR checks nothing of this op of old: what cannot become a gather is refused at its place.
// RUN: shardpass-opt %s import --split-input-file --verify-diagnostics

module attributes {mhlo.num_partitions = 2 : i32} {
  func.func @main(%x: tensor<4x9xf32>, %i: tensor<6xi32>) -> tensor<4x6xf32> {
    // expected-error@below {{stablehlo.torch_index_select cannot be decomposed into simpler ops: dim = 9223372036854775807 and batch_dims = 0 do not fit an operand of rank 2 and an index of rank 1}}
    %0 = "stablehlo.torch_index_select"(%x, %i) <{batch_dims = 0 : i64, dim = 9223372036854775807 : i64}>
        : (tensor<4x9xf32>, tensor<6xi32>) -> tensor<4x6xf32>
    return %0 : tensor<4x6xf32>
  }
}

// -----

module attributes {mhlo.num_partitions = 2 : i32} {
  func.func @main(%x: tensor<4x9xf32>, %i: tensor<6xi32>) -> tensor<4x6xf32> {
    // expected-error@below {{dim = 1 and batch_dims = 4000000000 do not fit}}
    %0 = "stablehlo.torch_index_select"(%x, %i) <{batch_dims = 4000000000 : i64, dim = 1 : i64}>
        : (tensor<4x9xf32>, tensor<6xi32>) -> tensor<4x6xf32>
    return %0 : tensor<4x6xf32>
  }
}

// -----

module attributes {mhlo.num_partitions = 2 : i32} {
  func.func @main(%x: tensor<4x9xf32>, %i: tensor<6xi32>) -> tensor<4x7xf32> {
    // expected-error@below {{they give tensor<4x6xf32>, where its result is tensor<4x7xf32>}}
    %0 = "stablehlo.torch_index_select"(%x, %i) <{batch_dims = 0 : i64, dim = 1 : i64}>
        : (tensor<4x9xf32>, tensor<6xi32>) -> tensor<4x7xf32>
    return %0 : tensor<4x7xf32>
  }
}
