// Made by tools/docs/make_examples.py from examples/programs/shard_map.py with jax 0.10.2.
#loc1 = loc("a_block")
#loc2 = loc("b_block")
#loc4 = loc("shard_map")
#loc7 = loc("psum_invariant")
#loc9 = loc("shard_map:"(#loc4))
#loc12 = loc("psum_invariant:"(#loc7))
module @jit_matmul_basic attributes {mhlo.num_partitions = 8 : i32, mhlo.num_replicas = 1 : i32} {
  sdy.mesh @mesh = <["i"=4, "j"=2]> {stablehlo.mesh = {axes = [{name = "i", size = 4 : i64}, {name = "j", size = 2 : i64}]}} loc(#loc)
  func.func public @main(%arg0: tensor<8x16xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"i"}, {"j"}]>} loc("a_block"), %arg1: tensor<16x32xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"j"}, {}]>} loc("b_block")) -> (tensor<8x32xf32> {jax.result_info = "result", sdy.sharding = #sdy.sharding<@mesh, [{"i"}, {}]>}) {
    %0 = sdy.manual_computation(%arg0, %arg1) in_shardings=[<@mesh, [{"i"}, {"j"}]>, <@mesh, [{"j"}, {}]>] out_shardings=[<@mesh, [{"i"}, {}]>] manual_axes={"i", "j"} (%arg2: tensor<2x8xf32> loc("shard_map:"(#loc4)), %arg3: tensor<8x32xf32> loc("shard_map:"(#loc4))) {
      %1 = stablehlo.dot_general %arg2, %arg3, contracting_dims = [1] x [0], precision = [DEFAULT, DEFAULT] : (tensor<2x8xf32>, tensor<8x32xf32>) -> tensor<2x32xf32> loc(#loc10)
      %2 = "stablehlo.all_reduce"(%1) <{channel_handle = #stablehlo.channel_handle<handle = 1, type = 1>, replica_groups = dense<[[0, 1], [2, 3], [4, 5], [6, 7]]> : tensor<4x2xi64>, use_global_device_ids}> ({
      ^bb0(%arg4: tensor<f32> loc("psum_invariant:"(#loc7)), %arg5: tensor<f32> loc("psum_invariant:"(#loc7))):
        %3 = stablehlo.add %arg4, %arg5 : tensor<f32> loc(#loc15)
        stablehlo.return %3 : tensor<f32> loc(#loc11)
      }) : (tensor<2x32xf32>) -> tensor<2x32xf32> loc(#loc11)
      sdy.return %2 : tensor<2x32xf32> loc(#loc9)
    } : (tensor<8x16xf32>, tensor<16x32xf32>) -> tensor<8x32xf32> loc(#loc3)
    return %0 : tensor<8x32xf32> loc(#loc8)
  } loc(#loc)
} loc(#loc)
#loc = loc(unknown)
#loc3 = loc("jit(matmul_basic)/shard_map")
#loc5 = loc("examples/programs/shard_map.py":19:22)
#loc6 = loc("examples/programs/shard_map.py":20:15)
#loc8 = loc("jit(matmul_basic)")
#loc10 = loc("dot_general"(#loc5))
#loc11 = loc("psum_invariant"(#loc6))
#loc13 = loc("add"(#loc6))
#loc14 = loc(callsite(#loc13 at #loc6))
#loc15 = loc(""(#loc14))
