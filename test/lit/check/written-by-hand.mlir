// A propagated module that was edited: what does not fit any more is found where it stands.
// RUN: shardpass-opt %s 'builtin.module(shardpass-check)' --verify-diagnostics

module attributes {mhlo.num_partitions = 4 : i32, mhlo.num_replicas = 1 : i32, shardpass.mesh = "mesh['x'=4]"} {
  func.func @main(%x: tensor<8x8xf32> {mhlo.sharding = "{devices=[4,1]<=[4]}"}) -> (tensor<8x8xf32> {mhlo.sharding = "{devices=[4,1]<=[4]}"}) {
    // expected-error@below {{the sharding {devices=[4]<=[4]} splits 1 dimensions, but the value is tensor<8x8xf32> and has 2 [SP203]}}
    %0 = stablehlo.negate %x {mhlo.sharding = "{devices=[4]<=[4]}"} : tensor<8x8xf32>
    // expected-error@below {{is over 2 devices, but the module runs on 4}}
    %1 = stablehlo.abs %0 {mhlo.sharding = "{devices=[2,1]<=[2]}"} : tensor<8x8xf32>
    return %1 : tensor<8x8xf32>
  }
}
