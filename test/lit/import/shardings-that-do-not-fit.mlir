// A sharding that does not fit its value or its module is an error at its place; XLA would drop it or die of it.
// RUN: shardpass-opt %s import --split-input-file --verify-diagnostics

func.func @main(
    // expected-error@below {{the sharding {devices=[2]<=[2]} splits 1 dimensions, but the value is tensor<4x4xf32> and has 2 [SP203]}}
    %x: tensor<4x4xf32> {mhlo.sharding = "{devices=[2]<=[2]}"}) -> tensor<4x4xf32> {
  return %x : tensor<4x4xf32>
}

// -----

module attributes {mhlo.num_partitions = 4 : i32} {
  func.func @main(
      // expected-error@below {{the sharding {devices=[2]<=[2]} is over 2 devices, but the module runs on 4 (mhlo.num_partitions) [SP204]}}
      %x: tensor<4xf32> {mhlo.sharding = "{devices=[2]<=[2]}"}) -> tensor<4xf32> {
    return %x : tensor<4xf32>
  }
}

// -----

// The first sharding says how many devices there are; the other one disagrees.
func.func @main(%x: tensor<4xf32> {mhlo.sharding = "{devices=[4]<=[4]}"}) -> tensor<4xf32> {
  // expected-error@below {{is over 2 devices, but the module runs on 4}}
  %0 = stablehlo.negate %x {mhlo.sharding = "{devices=[2]<=[2]}"} : tensor<4xf32>
  return %0 : tensor<4xf32>
}

// -----

func.func @main(
    %x: tensor<4xf32> {mhlo.sharding = "{devices=[2]<=[2]}"},
    // expected-error@below {{the sharding {maximal device=2} names device 2, but the module's devices are 0 to 1 [SP207]}}
    %y: tensor<4xf32> {mhlo.sharding = "{maximal device=2}"}) -> tensor<4xf32> {
  return %x : tensor<4xf32>
}

// -----

module attributes {mhlo.num_partitions = 2 : i32} {
  func.func @main(
      // expected-error@below {{which is not supported on argument 0 [SP208]}}
      %x: tensor<4xf32> {mhlo.sharding = "{devices=[1,2]<=[2] last_tile_dims={manual}}"}) -> tensor<4xf32> {
    return %x : tensor<4xf32>
  }
}

// -----

// Named dimensions say a rank, also where nothing is split.
module attributes {mhlo.num_partitions = 2 : i32} {
  func.func @main(
      %x: tensor<4x8xf32> {mhlo.sharding = "{replicated}"},
      // expected-error@below {{splits 4 dimensions, but the value is tensor<4x8xf32> and has 2 [SP203]}}
      %y: tensor<4x8xf32> {mhlo.sharding = "{mesh['y'=2], [{?}, {?}, {?}, {}]}"}) -> tensor<4x8xf32> {
    return %y : tensor<4x8xf32>
  }
}
