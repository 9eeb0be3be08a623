// partial sums were scattered along a dimension of size 0, which StableHLO refuses
module attributes {mhlo.num_partitions = 6 : i32} {
func.func @main(%a: tensor<12x0xf32> {mhlo.sharding = "{devices=[6,1]<=[6]}"}) -> (tensor<0xf32> {mhlo.sharding = "{devices=[6]<=[6]}"}) {
 %z = stablehlo.constant dense<0.0> : tensor<f32>
 %r = stablehlo.reduce(%a init: %z) applies stablehlo.add across dimensions = [0] : (tensor<12x0xf32>, tensor<f32>) -> tensor<0xf32>
 return %r : tensor<0xf32>
}}
