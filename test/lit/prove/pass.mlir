// Random bits are never proved: in the pipeline that is a warning, or an error where a proof is asked for.
// RUN: shardpass-opt %s 'partition{prove=true}' -o %t 2>&1 | FileCheck %s
// RUN: exits 1 shardpass-opt %s 'partition{prove=true require-proof=true}' 2>&1 | FileCheck %s --check-prefix=ERROR
// RUN: exits 1 shardpass-opt %t 'shardpass-prove{prove=true}' 2>&1 | FileCheck %s --check-prefix=ALONE
// RUN: exits 3 shardpass-prove %s %t
// CHECK: pass.mlir:14:{{[0-9]+}}: warning: it is not proved {{.*}}: `stablehlo.rng`: {{.*}} [SP955]
// ERROR: pass.mlir:14:{{[0-9]+}}: error: it is not proved {{.*}}: `stablehlo.rng`: {{.*}} [SP956]
// ALONE: error: shardpass-prove was given no whole program to compare with{{.*}} [SP957]
module attributes {mhlo.num_partitions = 4 : i32} {
  func.func @main(%x: tensor<8xf32> {mhlo.sharding = "{devices=[4]<=[4]}"}) -> tensor<8xf32> {
    %low = stablehlo.constant dense<0.0> : tensor<f32>
    %high = stablehlo.constant dense<1.0> : tensor<f32>
    %shape = stablehlo.constant dense<8> : tensor<1xi64>
    %noise = stablehlo.rng %low, %high, %shape, distribution = UNIFORM
      : (tensor<f32>, tensor<f32>, tensor<1xi64>) -> tensor<8xf32>
    %r = stablehlo.add %x, %noise : tensor<8xf32>
    return %r : tensor<8xf32>
  }
}
