"""A frozen weight over model with an adapter of low rank: batch over data."""

import jax
import jax.numpy as jnp
from jax.sharding import AbstractMesh, AxisType, NamedSharding
from jax.sharding import PartitionSpec as P

mesh = AbstractMesh((4, 2), ("data", "model"), axis_types=(AxisType.Auto,) * 2)
f32, i32 = jnp.float32, jnp.int32


def s(*spec):
    return NamedSharding(mesh, P(*spec))


def forward(frozen, adapter, x):
    h = jax.nn.gelu(x @ frozen["up"] + (x @ adapter["a"]) @ adapter["b"])
    return h @ frozen["down"]


frozen = {"up": s(None, "model"), "down": s("model")}
adapter = {"a": s(), "b": s(None, "model")}
jitted = jax.jit(forward, in_shardings=(frozen, adapter, s("data")), out_shardings=s("data"))
arguments = (
    {"up": jax.ShapeDtypeStruct((128, 1024), f32), "down": jax.ShapeDtypeStruct((1024, 128), f32)},
    {"a": jax.ShapeDtypeStruct((128, 4), f32), "b": jax.ShapeDtypeStruct((4, 1024), f32)},
    jax.ShapeDtypeStruct((1024, 128), f32),
)
