// What does not divide is legal, and a remark says what it costs, where remarks are asked for.
// RUN: shardpass-opt %s 'shardpass-import,shardpass-propagate,shardpass-check{remarks=true}' --verify-diagnostics
// RUN: shardpass-opt %s check 2>&1 | FileCheck %s

// CHECK-NOT: remark
// 5 over 4: tiles of 2, 8 places for 5 elements, 3 of 8 wasted.
func.func @main(
    // expected-remark@below {{dimension 0 of tensor<5x4xf32> has size 5, which 4 shards do not divide: tiles have size 2, and the last ones hold 3 elements of padding [SP216]}}
    %x: tensor<5x4xf32> {mhlo.sharding = "{devices=[4,1]<=[4]}"}) -> (tensor<5x4xf32> {mhlo.sharding = "{devices=[1,4]<=[4]}"}) {
  return %x : tensor<5x4xf32>
}
