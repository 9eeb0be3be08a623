// A partitioned module runs as it is, but holds no unpartitioned program to compare with; and a module whose
// pipeline does not partition is refused before anything runs.
// RUN: shardpass-run %s | FileCheck %s
// RUN: exits 1 shardpass-run %s --check 2>&1 | FileCheck %s --check-prefix=CHECK-WHOLE
// RUN: exits 1 shardpass-run %examples/format_rows.mlir propagate 2>&1 | FileCheck %s --check-prefix=NOT

// CHECK: 2 devices, no mesh, run on XLA
// CHECK: argument 0
// CHECK-SAME: 3xf32
// CHECK-SAME: {devices=[2]<=[2]}
// CHECK-SAME: 2xf32
// CHECK: Collectives: none
// CHECK-WHOLE: error: --check needs the program before partitioning
// CHECK-WHOLE-SAME: [SP550]
// NOT: error: the module is not partitioned
module attributes {mhlo.num_partitions = 2 : i32, mhlo.num_replicas = 1 : i32} {
  func.func public @main(%arg0: tensor<2xf32> {mhlo.sharding = "{manual}", shardpass.global_type = tensor<3xf32>, shardpass.sharding = "{devices=[2]<=[2]}"})
      -> (tensor<2xf32> {mhlo.sharding = "{manual}", shardpass.global_type = tensor<3xf32>, shardpass.sharding = "{devices=[2]<=[2]}"}) {
    %0 = stablehlo.negate %arg0 : tensor<2xf32>
    return %0 : tensor<2xf32>
  }
}
