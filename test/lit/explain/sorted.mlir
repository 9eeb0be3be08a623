// The line with most bytes comes first, unless the order of the program is asked for: gathering 4x16 to 16x16 brings 768
// bytes, 4x4 to 16x4 brings 192.
// RUN: shardpass-explain %s --sort program | FileCheck %s --check-prefix=PROGRAM
// RUN: shardpass-explain %s | FileCheck %s --check-prefix=BYTES
// RUN: shardpass-explain %s --top 1 | FileCheck %s --check-prefix=TOP
// RUN: shardpass-explain %s --group-by kind | FileCheck %s --check-prefix=KIND
// RUN: exits 2 shardpass-explain %s --sort size 2>&1 | FileCheck %s --check-prefix=USAGE

// PROGRAM: 20% {{ *}}192 B
// PROGRAM: 80% {{ *}}768 B
// BYTES: 80% {{ *}}768 B
// BYTES: 20% {{ *}}192 B
// TOP: 80% {{ *}}768 B
// TOP: and 1 line more: 192 B, 20% (--top 0 shows all)
// KIND: 100% {{ *}}960 B {{.*}}all_gather
// USAGE: error: argument --sort: invalid choice: 'size'
module attributes {mhlo.num_partitions = 4 : i32, shardpass.mesh = "mesh['x'=4]"} {
  func.func @main(%a: tensor<16x4xf32> {mhlo.sharding = "{devices=[4,1]<=[4]}"}, %b: tensor<16x16xf32> {mhlo.sharding = "{devices=[4,1]<=[4]}"})
      -> (tensor<16x4xf32> {mhlo.sharding = "{replicated}"}, tensor<16x16xf32> {mhlo.sharding = "{replicated}"}) {
    %0 = stablehlo.custom_call @Sharding(%a) {mhlo.sharding = "{replicated}"} : (tensor<16x4xf32>) -> tensor<16x4xf32>
    %1 = stablehlo.custom_call @Sharding(%b) {mhlo.sharding = "{replicated}"} : (tensor<16x16xf32>) -> tensor<16x16xf32>
    return %0, %1 : tensor<16x4xf32>, tensor<16x16xf32>
  }
}
