// Every value needs a sharding: each that has none is named at its place.
// RUN: shardpass-opt %s shardpass-import,shardpass-check --verify-diagnostics

func.func @main(
    %x: tensor<4xf32> {mhlo.sharding = "{devices=[2]<=[2]}"},
    // expected-error@below {{argument 1 has no sharding [SP215]}}
    %y: tensor<4xf32>) -> (tensor<4xf32> {mhlo.sharding = "{replicated}"}) {
  // expected-error@below {{stablehlo.add has no sharding [SP215]}}
  %0 = stablehlo.add %x, %y : tensor<4xf32>
  %1 = stablehlo.negate %0 {mhlo.sharding = "{replicated}"} : tensor<4xf32>
  return %1 : tensor<4xf32>
}
