// Tuples that no rule takes apart, and shardings that do not fit a tuple, are named with their place.
// RUN: shardpass-opt %s import --split-input-file --verify-diagnostics

module attributes {mhlo.num_partitions = 2 : i32} {
  func.func @main(%x: tensor<8xf32>, %y: tensor<f32>) -> tensor<8xf32> {
    // expected-error@below {{has 3 leaves, but the op has 2 results [SP210]}}
    %0 = stablehlo.tuple %x, %y {mhlo.sharding = "{{devices=[2]<=[2]}, {replicated}, {replicated}}"} : tuple<tensor<8xf32>, tensor<f32>>
    %1 = stablehlo.get_tuple_element %0[0] : (tuple<tensor<8xf32>, tensor<f32>>) -> tensor<8xf32>
    // expected-error@below {{this sharding cannot be read: {devices=[2]<=[2] [SP202]}}
    // expected-note@unknown {{found the end of the text [SP001]}}
    %2 = stablehlo.custom_call @f(%1) {mhlo.sharding = "{devices=[2]<=[2]"} : (tensor<8xf32>) -> tuple<tensor<8xf32>, tensor<f32>>
    %3 = stablehlo.get_tuple_element %2[0] : (tuple<tensor<8xf32>, tensor<f32>>) -> tensor<8xf32>
    return %3 : tensor<8xf32>
  }
}

// -----

module attributes {mhlo.num_partitions = 2 : i32} {
  func.func @main(%x: tensor<8xf32>) -> tensor<8xf32> {
    %0 = stablehlo.tuple %x, %x : tuple<tensor<8xf32>, tensor<8xf32>>
    // expected-error@below {{mhlo.custom_call takes or returns tuple<tensor<8xf32>, tensor<8xf32>>, and shardpass does not know how to unpack the tuple [SP248]}}
    %1 = mhlo.custom_call @f(%0) : (tuple<tensor<8xf32>, tensor<8xf32>>) -> tensor<8xf32>
    return %1 : tensor<8xf32>
  }
}
