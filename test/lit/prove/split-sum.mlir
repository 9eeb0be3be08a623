// A product whose sum is split over four devices: proved; with groups of two devices it is not.
// RUN: shardpass-opt %s partition -o %t
// RUN: shardpass-prove %s %t | FileCheck %s
// RUN: sed 's/dense<\[\[0, 1, 2, 3\]\]> : tensor<1x4xi64>/dense<[[0, 1], [2, 3]]> : tensor<2x2xi64>/' %t > %t.wrong
// RUN: exits 1 shardpass-prove %s %t.wrong 2>&1 | FileCheck %s --check-prefix=WRONG
// CHECK: proved: the program of one device computes the whole program
// WRONG: refuted: {{.*}}: stablehlo.{{[a-z_]+}}: it holds {{.*}} over the range [0, 4), not {{.*}} over the range [0, 8); result 0 differs: at [0, 0]
module attributes {mhlo.num_partitions = 4 : i32} {
  func.func @main(%x: tensor<8x8xf32> {mhlo.sharding = "{devices=[1,4]<=[4]}"},
                  %y: tensor<8x4xf32> {mhlo.sharding = "{devices=[4,1]<=[4]}"})
      -> (tensor<8x4xf32> {mhlo.sharding = "{replicated}"}) {
    %0 = stablehlo.dot_general %x, %y, contracting_dims = [1] x [0] : (tensor<8x8xf32>, tensor<8x4xf32>) -> tensor<8x4xf32>
    return %0 : tensor<8x4xf32>
  }
}
