// A module without any annotation is a program for one device, and a remark says so.
// RUN: shardpass-opt %s import --verify-diagnostics | FileCheck %s

// expected-remark@unknown {{nothing in the module says on how many devices it runs; one device is assumed [SP212]}}

// CHECK: module attributes {mhlo.num_partitions = 1 : i32
// CHECK-LABEL: func.func @main
func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> {
  return %x : tensor<4xf32>
}
