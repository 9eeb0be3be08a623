// A splat is a splat on every tile; another constant is held whole and sliced.
// RUN: shardpass-opt %s 'shardpass-import,shardpass-propagate,shardpass-partition' | FileCheck %s
// RUN: shardpass-run %s partition --devices 2 --check

// CHECK-LABEL: func.func @main()
// CHECK-DAG: %[[SPLAT:.*]] = stablehlo.constant dense<1.000000e+00> : tensor<2x4xf32>
// CHECK-DAG: %[[WHOLE:.*]] = stablehlo.constant dense<[1, 2, 3, 4]> : tensor<4xi32>
// CHECK-DAG: %[[SLICED:.*]] = stablehlo.custom_call @shardpass.redistribute(%[[WHOLE]]) {{{.*}}shardpass.from = "{replicated}"{{.*}}} : (tensor<4xi32>) -> tensor<2xi32>
// CHECK: return %[[SPLAT]], %[[SLICED]]
func.func @main() -> (tensor<4x4xf32> {mhlo.sharding = "{devices=[2,1]<=[2]}"}, tensor<4xi32> {mhlo.sharding = "{devices=[2]<=[2]}"}) {
  %0 = stablehlo.constant dense<1.0> : tensor<4x4xf32>
  %1 = stablehlo.constant dense<[1, 2, 3, 4]> : tensor<4xi32>
  return %0, %1 : tensor<4x4xf32>, tensor<4xi32>
}
