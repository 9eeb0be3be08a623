// Passes after the import say that it is missing, and which pipeline has it.
// RUN: not shardpass-opt %s shardpass-propagate 2>&1 | FileCheck %s --check-prefix=PROPAGATE
// RUN: not shardpass-opt %s 'builtin.module(shardpass-check)' 2>&1 | FileCheck %s --check-prefix=CHECKED
// RUN: not shardpass-opt %s shardpass-partition 2>&1 | FileCheck %s --check-prefix=PARTITION

// PROPAGATE: error: the module has no shardpass.mesh: it was not imported [SP214]
// PROPAGATE-NEXT: help: run shardpass-import first, or the named pipeline `propagate`
// CHECKED: error: the module has no shardpass.mesh: it was not imported [SP214]
// CHECKED-NEXT: help: run shardpass-import first, or the named pipeline `check`
// PARTITION: error: the module has no shardpass.mesh: it was not imported [SP214]
// PARTITION-NEXT: help: run shardpass-import first, or the named pipeline `partition`
func.func @main(%x: tensor<4xf32> {mhlo.sharding = "{devices=[2]<=[2]}"}) -> tensor<4xf32> {
  return %x : tensor<4xf32>
}
