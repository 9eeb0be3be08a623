// Two all_gathers along the minor dimension became one with two operands, which XLA's CPU client mixes up.
module attributes {mhlo.num_partitions = 8 : i32, mhlo.num_replicas = 1 : i32} {
  func.func @main(%x: tensor<4x1xi32> {mhlo.sharding = "{devices=[1,8]<=[8]}"}, %y: tensor<4x1xi32>) -> (tensor<1x4xi32>) {
    %zero = stablehlo.constant dense<0> : tensor<i32>
    %0 = stablehlo.pad %x, %zero, low = [2, 0], high = [-2, 0], interior = [0, 0] : (tensor<4x1xi32>, tensor<i32>) -> tensor<4x1xi32>
    %1 = stablehlo.add %x, %y : tensor<4x1xi32>
    %2 = stablehlo.add %1, %0 : tensor<4x1xi32>
    %3 = stablehlo.transpose %2, dims = [1, 0] : (tensor<4x1xi32>) -> tensor<1x4xi32>
    return %3 : tensor<1x4xi32>
  }
}
