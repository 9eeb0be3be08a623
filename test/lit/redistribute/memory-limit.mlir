// Where memory is free, one gather and a slice are sooner than two collectives on a small array; a limit in bytes below
// what they take, or the default, refuses them.
// RUN: shardpass-opt %s 'builtin.module(shardpass-redistribute{memory-limit=none machine=default})' | FileCheck %s --check-prefix=NONE
// RUN: shardpass-opt %s 'builtin.module(shardpass-redistribute)' | FileCheck %s --check-prefix=MAX
// RUN: shardpass-opt %s 'builtin.module(shardpass-redistribute{memory-limit=1KiB})' | FileCheck %s --check-prefix=MAX
// RUN: shardpass-opt %s 'builtin.module(shardpass-redistribute{memory-limit=none machine=paper})' | FileCheck %s --check-prefix=MAX
// RUN: exits 1 shardpass-opt %s 'builtin.module(shardpass-redistribute{memory-limit=127})' 2>&1 | FileCheck %s --check-prefix=OVER
// RUN: exits 1 shardpass-opt %s 'builtin.module(shardpass-redistribute{memory-limit=lots})' 2>&1 | FileCheck %s --check-prefix=TEXT
// RUN: exits 1 shardpass-opt %s 'builtin.module(shardpass-redistribute{machine=abacus})' 2>&1 | FileCheck %s --check-prefix=MACHINE

// OVER: memory-limit.mlir:{{[0-9]+}}:{{[0-9]+}}: error: no known plan for 16x16xf32 {{.*}} fits in 127 bytes: the least is 128 bytes
// OVER: help: allow at least 128 bytes; the source tile has 64 bytes and the target tile 64
// TEXT: error: 'lots' is not a memory limit [SP412]
// MACHINE: error: there is no machine 'abacus' [SP901]

module attributes {mhlo.num_partitions = 16 : i32, mhlo.num_replicas = 1 : i32} {
  // NONE-LABEL: func.func public @main
  // MAX-LABEL: func.func public @main
  func.func public @main(%x: tensor<1x16xf32>) -> tensor<4x4xf32> {
    // NONE: stablehlo.all_gather
    // NONE: stablehlo.dynamic_slice
    // NONE-NOT: stablehlo.all_to_all
    // MAX-NOT: stablehlo.all_gather
    // MAX: return {{%.*}} : tensor<4x4xf32>
    %0 = stablehlo.custom_call @shardpass.redistribute(%x) {
      shardpass.from = "{mesh['a'=4,'b'=4], [{'a','b'}, {}]}",
      shardpass.to = "{mesh['a'=4,'b'=4], [{'b'}, {'a'}]}",
      shardpass.global_type = tensor<16x16xf32>} : (tensor<1x16xf32>) -> tensor<4x4xf32>
    return %0 : tensor<4x4xf32>
  }
}
