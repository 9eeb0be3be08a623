// An inspection is left out of the program of one device too.
// RUN: shardpass-run %s partition --devices 2 --check
module attributes {mhlo.num_partitions = 2 : i32} {
  func.func @main(%x: tensor<8x4xf32> {mhlo.sharding = "{devices=[2,1]<=[2]}"}) -> tensor<8x4xf32> {
    %0 = stablehlo.custom_call @InspectSharding(%x) {backend_config = "address", has_side_effect = true} : (tensor<8x4xf32>) -> tensor<8x4xf32>
    stablehlo.custom_call @InspectSharding(%0) {has_side_effect = true} : (tensor<8x4xf32>) -> ()
    %1 = stablehlo.negate %0 : tensor<8x4xf32>
    return %1 : tensor<8x4xf32>
  }
}
