// A combined all_gather of results that nothing used was left: XLA aborted on it ("!IsManualLeaf()").
module attributes {mhlo.num_partitions = 6 : i32, mhlo.num_replicas = 1 : i32} {
  func.func @main(%a: tensor<4x3x3xf32> {mhlo.sharding = "{devices=[6,1,1]<=[2,3]T(1,0)}"}) -> (tensor<4x3x3xf32> {mhlo.sharding = "{devices=[6,1,1]<=[2,3]T(1,0)}"}, tensor<4xi32> {mhlo.sharding = "{devices=[6]<=[2,3]T(1,0)}"}) {
    %0:2 = "stablehlo.custom_call"(%a) {call_target_name = "lapack_spotrf_ffi", backend_config = {uplo = 76 : ui8}, api_version = 4 : i32, mhlo.frontend_attributes = {num_batch_dims = "1"}, operand_layouts = [dense<[1, 2, 0]> : tensor<3xindex>], result_layouts = [dense<[1, 2, 0]> : tensor<3xindex>, dense<0> : tensor<1xindex>], output_operand_aliases = [#stablehlo.output_operand_alias<output_tuple_indices = [0], operand_index = 0, operand_tuple_indices = []>]} : (tensor<4x3x3xf32>) -> (tensor<4x3x3xf32>, tensor<4xi32>)
    return %0#0, %0#1 : tensor<4x3x3xf32>, tensor<4xi32>
  }
}
