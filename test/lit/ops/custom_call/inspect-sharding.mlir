// Outside of JAX nobody is told of an inspected array: the calls send nothing, and XLA does not meet them, since it
// would follow an address in another process.
// RUN: shardpass-opt %s partition 2>&1 | FileCheck %s
// RUN: shardpass-run %s partition --devices 2
// RUN: shardpass-opt %s 'builtin.module(shardpass-import)' | FileCheck %s --check-prefix=IMPORT
// IMPORT-COUNT-2: @InspectSharding({{.*}} : (tensor<8x4xf32>) -> tensor<8x4xf32>
// CHECK-NOT: remark
// CHECK: shardpass.inspected = [{place = {{.*}}inspect-sharding.mlir\22:18:10)", sharding = "{devices=[2,1]<=[2]}", type = tensor<8x4xf32>}, {config = "address", place = {{.*}}inspect-sharding.mlir\22:19:5)", sharding = "{devices=[2,1]<=[2]}", type = tensor<8x4xf32>}]
// CHECK-LABEL: func.func @main
// CHECK-NOT: InspectSharding(%{{.*}} tensor<8x4xf32>
// CHECK-NOT: all_gather
// CHECK: stablehlo.custom_call @InspectSharding(%{{.*}}) {backend_config = "address", has_side_effect = true} : (tensor<4x4xf32>) -> tensor<4x4xf32>
// CHECK-NOT: InspectSharding
// CHECK: return
module attributes {mhlo.num_partitions = 2 : i32} {
  func.func @main(%x: tensor<8x4xf32> {mhlo.sharding = "{devices=[2,1]<=[2]}"}) -> tensor<8x4xf32> {

    %0 = stablehlo.custom_call @InspectSharding(%x) {has_side_effect = true} : (tensor<8x4xf32>) -> tensor<8x4xf32>
    stablehlo.custom_call @InspectSharding(%0) {backend_config = "address", has_side_effect = true} : (tensor<8x4xf32>) -> ()
    %1 = stablehlo.custom_call @SPMDFullToShardShape(%0) {mhlo.sharding = "{manual}"} : (tensor<8x4xf32>) -> tensor<4x4xf32>
    %2 = stablehlo.custom_call @InspectSharding(%1) {backend_config = "address", has_side_effect = true} : (tensor<4x4xf32>) -> tensor<4x4xf32>
    %3 = stablehlo.custom_call @SPMDShardToFullShape(%2) {mhlo.sharding = "{devices=[2,1]<=[2]}"} : (tensor<4x4xf32>) -> tensor<8x4xf32>
    return %3 : tensor<8x4xf32>
  }
}
