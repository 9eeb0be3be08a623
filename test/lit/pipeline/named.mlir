// A named pipeline, the list of its passes, and MLIR's textual form are the same.
// RUN: shardpass-opt %s propagate -o %t.named
// RUN: shardpass-opt %s shardpass-import,shardpass-propagate -o %t.list
// RUN: shardpass-opt %s 'builtin.module( shardpass-import , shardpass-propagate )' -o %t.text
// RUN: shardpass-opt %s 'import,shardpass-propagate' -o %t.part
// RUN: diff %t.named %t.list
// RUN: diff %t.named %t.text
// RUN: diff %t.named %t.part
// RUN: FileCheck %s < %t.named

// CHECK: stablehlo.add {{.*}}mhlo.sharding = "{devices=[2]<=[2]}"
func.func @main(%a: tensor<4xf32> {mhlo.sharding = "{devices=[2]0,1}"}) -> tensor<4xf32> {
  %0 = stablehlo.add %a, %a : tensor<4xf32>
  return %0 : tensor<4xf32>
}
