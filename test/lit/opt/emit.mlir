// The forms of output, each read again; what comes through a pipe needs no name.
// RUN: shardpass-opt %s --emit vhlo | shardpass-opt | FileCheck %s --check-prefix=TEXT
// RUN: shardpass-opt %s --emit vhlo=1.0.0 | shardpass-opt --emit stablehlo | FileCheck %s --check-prefix=TEXT
// RUN: shardpass-opt %s --emit bytecode | shardpass-opt | FileCheck %s --check-prefix=TEXT
// RUN: shardpass-opt %s --emit hlo | FileCheck %s --check-prefix=HLO
// RUN: shardpass-opt %s --emit hlo | shardpass-opt | FileCheck %s --check-prefix=TEXT
// RUN: shardpass-opt %s partition --emit hlo | FileCheck %s --check-prefix=TILES
// RUN: shardpass-opt %s --emit vhlo | shardpass-suggest | FileCheck %s --check-prefix=SUGGEST
// RUN: shardpass-opt %s --emit vhlo | shardpass-check-replication | FileCheck %s --check-prefix=REPLICATION
// RUN: exits 2 shardpass-opt %s --emit hlo --split-input-file 2>&1 | FileCheck %s --check-prefix=USAGE

// TEXT: func.func @main(%arg0: tensor<8x4xf32> {mhlo.sharding = "{devices=[2,1]<=[2]}"}
// TEXT: stablehlo.add
// HLO: HloModule main, entry_computation_layout={(f32[8,4]{1,0})->f32[8,4]{1,0}}
// HLO: f32[8,4]{1,0} parameter(0), sharding={devices=[2,1]<=[2]}
// HLO: f32[8,4]{1,0} add(
// TILES: HloModule main, {{.*}}, num_partitions=2
// TILES: f32[4,4]{1,0} parameter(0), sharding={manual}
// SUGGEST: on axis_0=2
// REPLICATION: <stdin>: no problem found
// USAGE: error: --emit hlo writes one module
func.func @main(%a: tensor<8x4xf32> {mhlo.sharding = "{devices=[2,1]<=[2]}"}) -> tensor<8x4xf32> {
  %0 = stablehlo.add %a, %a : tensor<8x4xf32>
  return %0 : tensor<8x4xf32>
}
