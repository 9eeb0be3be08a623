// A reversal along a split dimension: every device turns its tile round, and tiles change places in one permute.
// RUN: shardpass-opt %s partition | FileCheck %s
// RUN: shardpass-run %s partition --devices 4 --check

// CHECK-LABEL: func.func @main(
// CHECK: stablehlo.reverse %{{.*}}, dims = [0] : tensor<2x3xf32>
// CHECK: "stablehlo.collective_permute"
// CHECK-SAME{LITERAL}: source_target_pairs = dense<[[3, 0], [2, 1], [1, 2], [0, 3]]>
// CHECK-NOT: all_gather
module attributes {mhlo.num_partitions = 4 : i32} {
  func.func @main(%x: tensor<8x3xf32> {mhlo.sharding = "{devices=[4,1]<=[4]}"})
      -> (tensor<8x3xf32> {mhlo.sharding = "{devices=[4,1]<=[4]}"}) {
    %0 = stablehlo.reverse %x, dims = [0] : tensor<8x3xf32>
    return %0 : tensor<8x3xf32>
  }
}
