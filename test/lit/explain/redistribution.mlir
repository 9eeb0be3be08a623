// Rows to columns over 4 devices: an all_to_all; a 4x16 tile is 256 bytes, of which 3/4 go to others. So small a tile goes as it is, in four 4x4 blocks.
// RUN: shardpass-explain %s --source %S --json | FileCheck %s
// RUN: shardpass-explain %s --source %S --html %t.html | FileCheck %s --check-prefix=TEXT
// RUN: FileCheck %s --check-prefix=HTML < %t.html

// CHECK: "total_bytes_received": 192
// CHECK: "kind": "all_to_all"
// CHECK: "axes": [
// CHECK-NEXT: "x"
// CHECK: "bytes_each": 192
// CHECK: "operand": "tensor<4x16xf32>"
// CHECK: "result": "tensor<16x4xf32>"
// CHECK: "array": "%a"
// CHECK: "source": "P('x')"
// CHECK: "target": "P(None, 'x')"
// CHECK: "source_dims"
// CHECK: "times": 1
// CHECK: "bytes_received": 192
// TEXT: 192 B
// TEXT: 1 x all_to_all over x: %a f32[16,16], P('x') -> P(None, 'x')
// TEXT: the constraint here says P(None, 'x')
// HTML: <title>{{.*}}redistribution.mlir: what its devices receive and hold</title>
// HTML: 1 x all_to_all over x: %a f32[16,16]
// HTML: "kind":"all_to_all","axes":["x"]
// HTML-SAME: "before":{{\[\["x"\],\[\]\]}},"after":{{\[\[\],\["x"\]\]}}
// HTML-NOT: src=
// HTML-NOT: href=
module attributes {mhlo.num_partitions = 4 : i32, shardpass.mesh = "mesh['x'=4]"} {
  func.func @main(%a: tensor<16x16xf32> {mhlo.sharding = "{devices=[4,1]<=[4]}"}) -> (tensor<16x16xf32> {mhlo.sharding = "{devices=[1,4]<=[4]}"}) {
    %0 = stablehlo.custom_call @Sharding(%a) {mhlo.sharding = "{devices=[1,4]<=[4]}"} : (tensor<16x16xf32>) -> tensor<16x16xf32>
    return %0 : tensor<16x16xf32>
  }
}
