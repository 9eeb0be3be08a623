// With --sort bytes the most expensive collective comes first: gathering 4x16 to 16x16 brings 768 bytes,
// 4x4 to 16x4 brings 192.
// RUN: shardpass-explain %s | FileCheck %s --check-prefix=PROGRAM
// RUN: shardpass-explain %s --sort bytes | FileCheck %s --check-prefix=BYTES
// RUN: exits 2 shardpass-explain %s --sort size 2>&1 | FileCheck %s --check-prefix=USAGE

// PROGRAM: 1 {{ *}}all_gather {{ *}}x (4) {{ *}}192 B
// PROGRAM: 2 {{ *}}all_gather {{ *}}x (4) {{ *}}768 B
// BYTES: 1 {{ *}}all_gather {{ *}}x (4) {{ *}}768 B
// BYTES: 2 {{ *}}all_gather {{ *}}x (4) {{ *}}192 B
// USAGE: error: argument --sort: invalid choice: 'size'
module attributes {mhlo.num_partitions = 4 : i32, shardpass.mesh = "mesh['x'=4]"} {
  func.func @main(%a: tensor<16x4xf32> {mhlo.sharding = "{devices=[4,1]<=[4]}"}, %b: tensor<16x16xf32> {mhlo.sharding = "{devices=[4,1]<=[4]}"})
      -> (tensor<16x4xf32> {mhlo.sharding = "{replicated}"}, tensor<16x16xf32> {mhlo.sharding = "{replicated}"}) {
    %0 = stablehlo.custom_call @Sharding(%a) {mhlo.sharding = "{replicated}"} : (tensor<16x4xf32>) -> tensor<16x4xf32>
    %1 = stablehlo.custom_call @Sharding(%b) {mhlo.sharding = "{replicated}"} : (tensor<16x16xf32>) -> tensor<16x16xf32>
    return %0, %1 : tensor<16x4xf32>, tensor<16x16xf32>
  }
}
