"""A language model's embedding, one layer and logits: the vocabulary's table over model by columns."""

import jax
import jax.numpy as jnp
from jax.sharding import AbstractMesh, AxisType, NamedSharding
from jax.sharding import PartitionSpec as P

mesh = AbstractMesh((4, 2), ("data", "model"), axis_types=(AxisType.Auto,) * 2)
f32, i32 = jnp.float32, jnp.int32


def s(*spec):
    return NamedSharding(mesh, P(*spec))


def logits(params, tokens):
    x = params["table"][tokens]
    x = x + jnp.tanh(x @ params["up"]) @ params["down"]
    return x @ params["head"]


specs = {"table": s(None, "model"), "up": s(None, "model"), "down": s("model"), "head": s(None, "model")}
jitted = jax.jit(logits, in_shardings=(specs, s("data")), out_shardings=s("data", None, "model"))
arguments = (
    {
        "table": jax.ShapeDtypeStruct((4096, 128), f32),
        "up": jax.ShapeDtypeStruct((128, 512), f32),
        "down": jax.ShapeDtypeStruct((512, 128), f32),
        "head": jax.ShapeDtypeStruct((128, 4096), f32),
    },
    jax.ShapeDtypeStruct((16, 64), i32),
)
