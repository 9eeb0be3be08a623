// rng is no function of anything, so devices would draw numbers of their own: those of device 0 are taken on all. The
// others add nothing to them in a reduce_scatter.
// RUN: shardpass-opt %s partition | FileCheck %s

// CHECK-LABEL: func.func @main(
// CHECK: %[[DRAWN:.*]] = stablehlo.rng
// CHECK: %[[KEPT:.*]] = stablehlo.select %{{.*}}, %[[DRAWN]]
// CHECK: "stablehlo.reduce_scatter"(%[[KEPT]])
// CHECK: all devices take the numbers that device 0 draws
// CHECK-NOT: channel_handle
module attributes {mhlo.num_partitions = 4 : i32} {
  func.func @main() -> (tensor<8xf32> {mhlo.sharding = "{devices=[4]<=[4]}"}) {
    %a = stablehlo.constant dense<0.0> : tensor<f32>
    %b = stablehlo.constant dense<1.0> : tensor<f32>
    %c = stablehlo.constant dense<8> : tensor<1xi64>
    %0 = stablehlo.rng %a, %b, %c, distribution = UNIFORM : (tensor<f32>, tensor<f32>, tensor<1xi64>) -> tensor<8xf32>
    return %0 : tensor<8xf32>
  }
}
