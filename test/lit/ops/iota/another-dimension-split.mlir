// Along a dimension that is not split every device counts alike: no offset, and no partition_id.
// RUN: shardpass-opt %s partition | FileCheck %s
// RUN: shardpass-run %s partition --devices 2 --check

// CHECK-LABEL: func.func @main()
// CHECK-NEXT: %[[LOCAL:.*]] = stablehlo.iota dim = 1 : tensor<4x3xi32>
// CHECK-NEXT: return %[[LOCAL]]
module attributes {mhlo.num_partitions = 2 : i32} {
  func.func @main() -> (tensor<8x3xi32> {mhlo.sharding = "{devices=[2,1]<=[2]}"}) {
    %0 = stablehlo.iota dim = 1 : tensor<8x3xi32>
    return %0 : tensor<8x3xi32>
  }
}
