// Rows to columns over 4 devices: an all_to_all; a 4x16 tile is 256 bytes, of which 3/4 go to others. The exchange is of four 4x4 blocks.
// RUN: shardpass-explain %s --json | FileCheck %s
// RUN: shardpass-explain %s --html %t.html | FileCheck %s --check-prefix=TEXT
// RUN: FileCheck %s --check-prefix=HTML < %t.html

// CHECK: "total_bytes_received": 192
// CHECK: "kind": "all_to_all"
// CHECK: "axes": "x"
// CHECK: "operand": "tensor<4x4x4xf32>"
// CHECK: "result": "tensor<4x4x4xf32>"
// CHECK: "bytes_received": 192
// CHECK: "in_loop": false
// TEXT: all_to_all {{ *}}x (4) {{ *}}192 B
// HTML: <title>{{.*}}redistribution.mlir: 4 devices
// HTML: <td{{.*}}all_to_all</td>
// HTML: tensor&lt;4x4x4xf32&gt; &rarr; tensor&lt;4x4x4xf32&gt;
// HTML-NOT: src=
// HTML-NOT: href=
module attributes {mhlo.num_partitions = 4 : i32, shardpass.mesh = "mesh['x'=4]"} {
  func.func @main(%a: tensor<16x16xf32> {mhlo.sharding = "{devices=[4,1]<=[4]}"}) -> (tensor<16x16xf32> {mhlo.sharding = "{devices=[1,4]<=[4]}"}) {
    %0 = stablehlo.custom_call @Sharding(%a) {mhlo.sharding = "{devices=[1,4]<=[4]}"} : (tensor<16x16xf32>) -> tensor<16x16xf32>
    return %0 : tensor<16x16xf32>
  }
}
