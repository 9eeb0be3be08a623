// XLA's own form of a region. The sum over devices {0,1} and {2,3} leaves the halves different.
// RUN: exits 1 shardpass-check-replication %s 2>&1 | FileCheck %s
// RUN: sed -e 's/\[\[0, 1\], \[2, 3\]\]> : tensor<2x2/[[0, 1, 2, 3]]> : tensor<1x4/' %s > %t.whole.mlir
// RUN: shardpass-check-replication %t.whole.mlir | FileCheck %s --check-prefix=RIGHT

// RIGHT: whole.mlir: no problem found
// CHECK: gspmd-form.mlir:[[# @LINE + 15]]:{{[0-9]+}}: error: the output tensor<2xf32> (result 0 of @main) of the manual region is replicated over {{.*}}, but its value may differ between devices 0 and 2 [SP237]
// CHECK-NEXT: help: make the devices agree before the region ends
// CHECK-NEXT: gspmd-form.mlir:[[# @LINE + 6]]:{{[0-9]+}}: note: stablehlo.all_reduce may differ between devices 0 and 2
// CHECK-NEXT: gspmd-form.mlir:[[# @LINE + 4]]:{{[0-9]+}}: note: stablehlo.custom_call may differ between devices 0 and 2, {{.*}}: the region's input has different tiles on devices 0 and 2
module attributes {mhlo.num_partitions = 4 : i32} {
func.func @main(%a: tensor<8xf32>) -> tensor<2xf32> {
  %0 = stablehlo.custom_call @Sharding(%a) {mhlo.sharding = "{devices=[4]<=[4]}"} : (tensor<8xf32>) -> tensor<8xf32>
  %1 = stablehlo.custom_call @SPMDFullToShardShape(%0) {mhlo.sharding = "{manual}"} : (tensor<8xf32>) -> tensor<2xf32>
  %2 = "stablehlo.all_reduce"(%1) <{
    channel_handle = #stablehlo.channel_handle<handle = 1, type = 1>, use_global_device_ids,
    replica_groups = dense<[[0, 1], [2, 3]]> : tensor<2x2xi64>}> ({
  ^bb0(%p: tensor<f32>, %q: tensor<f32>):
    %s = stablehlo.add %p, %q : tensor<f32>
    stablehlo.return %s : tensor<f32>
  }) : (tensor<2xf32>) -> tensor<2xf32>
  %3 = stablehlo.custom_call @SPMDShardToFullShape(%2) {mhlo.sharding = "{replicated}"} : (tensor<2xf32>) -> tensor<2xf32>
  return %3 : tensor<2xf32>
}
}
