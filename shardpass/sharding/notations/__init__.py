"""The notations of shardings; each module reads and prints one notation.

| module | notation |
|---|---|
| ``mhlo`` | XLA's ``mhlo.sharding`` text: V1, V2, tuples, and the form of the format's own document |
| ``named`` | XLA's named form (V3), over the mesh text of ``named_mesh`` |
| ``metadata`` | the ``metadata={..}`` of both |
| ``sdy`` | ``#sdy.sharding<..>`` attributes |
| ``distributed_type`` | the types of Rink et al.: ``[32{"x"}128, 10]`` |
| ``onnx_spec``, ``onnx_sharding``, ``onnx_proto`` | ONNX's ShardingSpec as text, as a sharding, and as protobuf |

JAX's PartitionSpec is in ``shardpass.jax``, since it needs JAX. The canonical text of a sharding is part of the model
(``str``); the modules here are above the model, and the model imports none of them.
"""
