// RUN: shardpass-opt %s partition --verify-diagnostics
// RUN: exits 1 shardpass-check %s 2>&1 | FileCheck %s

// CHECK: more-shards-than-devices.mlir:[[# @LINE + 5]]:{{[0-9]+}}: error:
// CHECK-NEXT: help: {{.*}}mhlo.num_partitions
// CHECK-NOT: error:
module attributes {mhlo.num_partitions = 4 : i32} {
  // expected-error@below {{the sharding {devices=[8,1]<=[8]} is over 8 devices, but the module runs on 4 (mhlo.num_partitions)}}
  func.func @main(%a: tensor<16x8xf32> {mhlo.sharding = "{devices=[8,1]<=[8]}"}) -> tensor<16x8xf32> {
    return %a : tensor<16x8xf32>
  }
}
