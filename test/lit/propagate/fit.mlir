// The most memory that a device may need, and what is split to keep it. A step on 8 devices, its batch split: a device has
// x and y of 512 KiB each, and the gradient, partial until it is scattered, of 256. With w whole (256 KiB) that is above
// 1500 KiB; with w split, and gathered where it is used, it is below. No sharding makes the gradient's operands smaller.
// RUN: shardpass-opt %s propagate | FileCheck %s --check-prefix=FREE
// RUN: shardpass-opt %s 'propagate{fit=1500KiB}' | FileCheck %s --check-prefix=FIT
// RUN: exits 1 shardpass-opt %s 'partition{fit=1MiB}' 2>&1 | FileCheck %s --check-prefix=LOW
// RUN: exits 1 shardpass-opt %s 'partition{fit=1500KiB effort=0}' 2>&1 | FileCheck %s --check-prefix=LOW
// RUN: exits 1 shardpass-opt %s 'partition{fit=max}' 2>&1 | FileCheck %s --check-prefix=MAX

// FREE: @main({{.*}}, %arg1: tensor<256x256xf32> {mhlo.sharding = "{replicated}"}, {{.*}}
// FIT: @main(%arg0: {{.*}} {mhlo.sharding = "{devices=[8,1]<=[8]}"}, %arg1: tensor<256x256xf32> {mhlo.sharding = "{devices=[{{8,1|1,8}}]<=[8]}"}, {{.*}}
// LOW: error: no shardings were found that keep the memory of a device below {{.*}} [SP804]
// LOW: help: raise the limit to at least
// MAX: error: option 'fit' of pass shardpass-propagate takes bytes, as in 16GiB, not max [SP107]
module attributes {mhlo.num_partitions = 8 : i32, shardpass.mesh = "mesh['d'=8]"} {
  func.func @main(%x: tensor<4096x256xf32> {mhlo.sharding = "{devices=[8,1]<=[8]}"}, %w: tensor<256x256xf32>,
                  %m: tensor<256x256xf32>) -> (tensor<256x256xf32>, tensor<256x256xf32>) {
    %y = stablehlo.dot_general %x, %w, contracting_dims = [1] x [0] : (tensor<4096x256xf32>, tensor<256x256xf32>) -> tensor<4096x256xf32>
    %g = stablehlo.dot_general %x, %y, contracting_dims = [0] x [0] : (tensor<4096x256xf32>, tensor<4096x256xf32>) -> tensor<256x256xf32>
    %n = stablehlo.add %m, %g : tensor<256x256xf32>
    %v = stablehlo.subtract %w, %n : tensor<256x256xf32>
    return %v, %n : tensor<256x256xf32>, tensor<256x256xf32>
  }
}
