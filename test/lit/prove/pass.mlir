// Bits that devices make in parts are not proved: in the pipeline that is a warning, or an error where a proof is asked for.
// RUN: shardpass-opt %s 'partition{prove=true}' -o %t 2>&1 | FileCheck %s
// RUN: exits 1 shardpass-opt %s 'partition{prove=true require-proof=true}' 2>&1 | FileCheck %s --check-prefix=ERROR
// RUN: exits 1 shardpass-opt %t 'shardpass-prove{prove=true}' 2>&1 | FileCheck %s --check-prefix=ALONE
// RUN: exits 3 shardpass-prove %s %t
// CHECK: pass.mlir:11:{{[0-9]+}}: warning: it is not proved {{.*}}: `stablehlo.add`: {{.*}} [SP955]
// ERROR: pass.mlir:11:{{[0-9]+}}: error: it is not proved {{.*}}: `stablehlo.add`: {{.*}} [SP956]
// ALONE: error: shardpass-prove was given no whole program to compare with{{.*}} [SP957]
module attributes {mhlo.num_partitions = 4 : i32} {
  func.func @main(%s: tensor<2xui64>, %x: tensor<64xui32> {mhlo.sharding = "{devices=[4]<=[4]}"}) -> tensor<64xui32> {
    %state, %noise = stablehlo.rng_bit_generator %s, algorithm = PHILOX
      : (tensor<2xui64>) -> (tensor<2xui64>, tensor<64xui32>)
    %r = stablehlo.add %x, %noise : tensor<64xui32>
    return %r : tensor<64xui32>
  }
}
// PROCESSES: real
