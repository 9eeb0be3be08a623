// The check leaves the module as it is.
// RUN: shardpass-opt %s propagate -o %t.before
// RUN: shardpass-opt %s check -o %t.after
// RUN: diff %t.before %t.after

func.func @main(%x: tensor<8xf32> {mhlo.sharding = "{devices=[2]<=[2]}"}) -> tensor<8xf32> {
  %0 = stablehlo.negate %x : tensor<8xf32>
  return %0 : tensor<8xf32>
}
