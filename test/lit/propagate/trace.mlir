// `trace` tells each step and `verbose` each conflict, at its line: two values of 256 bytes speak for x, one for y.
// RUN: shardpass-opt %s 'builtin.module(shardpass-import,shardpass-propagate{effort=0 trace=true verbose=true})' 2>&1 >/dev/null | FileCheck %s
// RUN: shardpass-opt %s 'builtin.module(shardpass-import,shardpass-propagate{trace=true})' 2>&1 >/dev/null | FileCheck %s --check-prefix=SOLVED
// RUN: shardpass-opt %s 'builtin.module(shardpass-import,shardpass-propagate{effort=0},shardpass-partition)' | FileCheck %s --check-prefix=CAUSE

module attributes {mhlo.num_partitions = 4 : i32, shardpass.mesh = "mesh['x'=2,'y'=2]"} {
  func.func @main(%a: tensor<8x8xf32> {mhlo.sharding = "{devices=[2,1,2]<=[4] last_tile_dim_replicate}"},
                  %c: tensor<8x8xf32> {mhlo.sharding = "{devices=[2,1,2]<=[2,2]T(1,0) last_tile_dim_replicate}"})
      -> tensor<8x8xf32> {
    // CHECK: trace.mlir:11:{{[0-9]+}}: stablehlo.negate: result 0: [{{{}}}, {{{}}}] -> [{x}, {{{}}}]
    %0 = stablehlo.negate %a : tensor<8x8xf32>
    // CHECK: trace.mlir:14:{{[0-9]+}}: stablehlo.add: split over x (512 bytes) rather than y (256 bytes)
    // CAUSE: shardpass.cause = "operand 1 of stablehlo.add; split over x (512 bytes) rather than y (256 bytes)"
    %1 = stablehlo.add %0, %c : tensor<8x8xf32>
    // SOLVED: decision: at the least sum of communication and work (whole axes, at most one shared copy of each annotated array)
    return %1 : tensor<8x8xf32>
  }
}
