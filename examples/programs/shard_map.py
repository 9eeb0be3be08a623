"""The two matrix products of shard_map's design document: per-device code with its own collectives.

Both multiply a (8 by 16, split in both dimensions) with b (16 by 32, split by rows) on a 4x2 mesh. The first
sums the partial products and keeps them whole over "j"; the second scatters the sum over "j".
"""

import jax
import jax.numpy as jnp
from jax.sharding import Mesh, NamedSharding
from jax.sharding import PartitionSpec as P

MESH = {"i": 4, "j": 2}


def programs(mesh: Mesh):
    """name -> (jitted function, its arguments' shapes)."""

    def matmul_basic(a_block, b_block):
        partial_sum = jnp.dot(a_block, b_block)
        return jax.lax.psum(partial_sum, "j")

    def matmul_reduce_scatter(a_block, b_block):
        partial_sum = jnp.matmul(a_block, b_block)
        return jax.lax.psum_scatter(partial_sum, "j", scatter_dimension=1, tiled=True)

    def jitted(body, out_spec):
        in_specs = (P("i", "j"), P("j", None))
        return jax.jit(
            jax.shard_map(body, mesh=mesh, in_specs=in_specs, out_specs=out_spec),
            in_shardings=tuple(NamedSharding(mesh, spec) for spec in in_specs),
            out_shardings=NamedSharding(mesh, out_spec),
        )

    arguments = (jax.ShapeDtypeStruct((8, 16), jnp.float32), jax.ShapeDtypeStruct((16, 32), jnp.float32))
    return {
        "shard_map_matmul": (jitted(matmul_basic, P("i", None)), arguments),
        "shard_map_matmul_reduce_scatter": (jitted(matmul_reduce_scatter, P("i", "j")), arguments),
    }
