// A window of one row added at a place in bounds, or out of them, of rows that are split over more devices than rows.
module attributes {mhlo.num_partitions = 8 : i32, mhlo.num_replicas = 1 : i32} {
  func.func @main(%at: tensor<1xi32>, %update: tensor<1x1x3xf32>, %x: tensor<3x3xf32>) -> (tensor<3x3xf32> {mhlo.sharding = "{devices=[8,1]<=[8]}"}) {
    %0 = "stablehlo.scatter"(%x, %at, %update) ({
    ^bb0(%p: tensor<f32>, %q: tensor<f32>):
      %r = stablehlo.add %p, %q : tensor<f32>
      stablehlo.return %r : tensor<f32>
    }) {scatter_dimension_numbers = #stablehlo.scatter<update_window_dims = [1, 2], scatter_dims_to_operand_dims = [0], index_vector_dim = 1>} : (tensor<3x3xf32>, tensor<1xi32>, tensor<1x1x3xf32>) -> tensor<3x3xf32>
    return %0 : tensor<3x3xf32>
  }
}
