// An op that is to run on one device runs on all, and a remark says so: its result is the same. A constraint says where
// an array lies, and is no op that runs.
// RUN: shardpass-opt %s partition --split-input-file --verify-diagnostics
// RUN: shardpass-run %s partition --devices 4 --check

module attributes {mhlo.num_partitions = 4 : i32} {
  func.func @main(%x: tensor<8x4xf32> {mhlo.sharding = "{devices=[4,1]<=[4]}"}) -> tensor<8x4xf32> {
    // expected-remark@below {{stablehlo.sine has the sharding {maximal device=1}, but all 4 devices compute it, because they run one program; its result is the same [SP314]}}
    %0 = stablehlo.sine %x {mhlo.sharding = "{maximal device=1}"} : tensor<8x4xf32>
    %1 = stablehlo.cosine %0 : tensor<8x4xf32>
    %2 = stablehlo.custom_call @Sharding(%1) {mhlo.sharding = "{maximal device=2}"} : (tensor<8x4xf32>) -> tensor<8x4xf32>
    return %2 : tensor<8x4xf32>
  }
}
