// Locations name the file as the command line did, and the line in the file; those in the text are kept.
// RUN: shardpass-opt %s --mlir-print-debuginfo | FileCheck %s
// RUN: shardpass-opt %s | FileCheck %s --check-prefix=PLAIN
// RUN: shardpass-opt --mlir-print-debuginfo < %s | FileCheck %s --check-prefix=STDIN

// CHECK-DAG: stablehlo.add {{.*}} loc(#[[SUM:.*]])
// CHECK-DAG: #[[SUM]] = loc("{{.*}}debuginfo.mlir":[[# @LINE + 7]]:8)
// CHECK-DAG: %arg0: tensor<4xf32> loc("{{.*}}debuginfo.mlir":[[# @LINE + 5]]:17)
// CHECK-DAG: stablehlo.negate {{.*}} loc(#[[NEG:.*]])
// CHECK-DAG: #[[NEG]] = loc("model.py":3:4)
// STDIN: loc("<stdin>":[[# @LINE + 2]]:17)
// PLAIN-NOT: loc(
func.func @main(%a: tensor<4xf32>) -> tensor<4xf32> {
  %0 = stablehlo.add %a, %a : tensor<4xf32>
  %1 = stablehlo.negate %0 : tensor<4xf32> loc("model.py":3:4)
  return %1 : tensor<4xf32>
}
