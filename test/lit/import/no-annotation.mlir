// A module without any annotation is a program for one device, and a remark says so.
// RUN: shardpass-opt %s import --verify-diagnostics | FileCheck %s

// expected-remark@unknown {{the module does not specify the number of devices; one device is assumed [SP212]}}

// CHECK: module attributes {mhlo.num_partitions = 1 : i32
// CHECK-LABEL: func.func @main
func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> {
  return %x : tensor<4xf32>
}
