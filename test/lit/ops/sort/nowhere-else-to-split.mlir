// The only dimension is the ordered one, so that its split has nowhere to go: it is gathered, sorted on every device
// and cut again, and a remark says what that costs.
// RUN: shardpass-opt %s partition --verify-diagnostics | FileCheck %s
// RUN: shardpass-run %s partition --devices 4 --check

// A device lacks 300 of 400 numbers of 4 bytes: 1200.
// CHECK-LABEL: func.func @main(
// CHECK: %[[WHOLE:.*]] = "stablehlo.all_gather"(%arg0)
// CHECK: %[[SORTED:.*]] = "stablehlo.sort"(%[[WHOLE]])
// CHECK: (tensor<400xf32>) -> tensor<400xf32>
// CHECK: stablehlo.dynamic_slice %[[SORTED]], {{.*}} sizes = [100]
// CHECK-NOT: channel_handle
module attributes {mhlo.num_partitions = 4 : i32} {
  func.func @main(%x: tensor<400xf32> {mhlo.sharding = "{devices=[4]<=[4]}"})
      -> (tensor<400xf32> {mhlo.sharding = "{devices=[4]<=[4]}"}) {
    // expected-remark@below {{needs dimension 0 of its operand 0 (tensor<400xf32>) in full on each device; 1200 bytes are gathered}}
    %0 = "stablehlo.sort"(%x) <{dimension = 0 : i64, is_stable = true}> ({
      ^bb0(%a: tensor<f32>, %b: tensor<f32>):
        %1 = stablehlo.compare LT, %a, %b, TOTALORDER : (tensor<f32>, tensor<f32>) -> tensor<i1>
        stablehlo.return %1 : tensor<i1>
    }) : (tensor<400xf32>) -> tensor<400xf32>
    return %0 : tensor<400xf32>
  }
}
