"""A layer of experts, all of which see all tokens, weighted by a gate: experts over model, tokens over data."""

import jax
import jax.numpy as jnp
from jax.sharding import AbstractMesh, AxisType, NamedSharding
from jax.sharding import PartitionSpec as P

mesh = AbstractMesh((4, 2), ("data", "model"), axis_types=(AxisType.Auto,) * 2)
f32, i32 = jnp.float32, jnp.int32


def s(*spec):
    return NamedSharding(mesh, P(*spec))


def mix(params, x):
    gate = jax.nn.softmax(x @ params["gate"], axis=-1)
    h = jax.nn.relu(jnp.einsum("td,edf->etf", x, params["up"]))
    return jnp.einsum("etf,efd,te->td", h, params["down"], gate)


specs = {"gate": s(), "up": s("model"), "down": s("model")}
jitted = jax.jit(mix, in_shardings=(specs, s("data")), out_shardings=s("data"))
arguments = (
    {
        "gate": jax.ShapeDtypeStruct((64, 8), f32),
        "up": jax.ShapeDtypeStruct((8, 64, 256), f32),
        "down": jax.ShapeDtypeStruct((8, 256, 64), f32),
    },
    jax.ShapeDtypeStruct((1024, 64), f32),
)
