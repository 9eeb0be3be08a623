// RUN: shardpass-explain %s | FileCheck %s
// RUN: shardpass-explain %s --json | FileCheck %s --check-prefix=JSON

// CHECK: nothing-moves.mlir: 2 devices, axis_0=2
// CHECK-NEXT: no collectives
// CHECK-NEXT: computes for {{.*}}compute bounds a step
// CHECK: memory of a device: 32 B (arguments 16 B, results 16 B, temporaries 0 B)
// CHECK-NOT: {{.}}
// JSON: "devices": 2
// JSON: "total_bytes_received": 0
// JSON: "collectives": []
func.func @main(%a: tensor<8xf32> {mhlo.sharding = "{devices=[2]<=[2]}"}) -> tensor<8xf32> {
  %0 = stablehlo.add %a, %a : tensor<8xf32>
  return %0 : tensor<8xf32>
}
