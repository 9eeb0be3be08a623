// RUN: exits 1 shardpass-suggest %s 2>&1 | FileCheck %s --check-prefix=NO-MESH
// RUN: exits 1 shardpass-suggest %s --mesh d=2 --memory-limit 10 2>&1 | FileCheck %s --check-prefix=LIMIT
// RUN: exits 1 shardpass-suggest %s --mesh d 2>&1 | FileCheck %s --check-prefix=MESH
// RUN: exits 1 shardpass-suggest %s --mesh d=2 --memory-limit lots 2>&1 | FileCheck %s --check-prefix=BYTES
// RUN: exits 2 shardpass-suggest %s --effort 9 2>&1 | FileCheck %s --check-prefix=EFFORT

// NO-MESH: errors.mlir: error: no mesh of several devices is known{{.*}} [SP802]
// NO-MESH: help: give a mesh: --mesh data=4,model=2
// LIMIT: errors.mlir: error: no shardings were found that keep the memory of a device below 10 B: the least found is 32 B [SP804]
// LIMIT: help: raise the limit to at least 32 bytes
// MESH: error: 'd' is not a mesh [SP805]
// BYTES: error: {{.*}}lots{{.*}} [SP412]
// EFFORT: '9' is no effort: give 1 or 2
func.func @main(%a: tensor<8xf32>) -> tensor<8xf32> {
  %0 = stablehlo.sine %a : tensor<8xf32>
  return %0 : tensor<8xf32>
}
