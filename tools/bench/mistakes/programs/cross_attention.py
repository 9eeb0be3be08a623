"""Decoder queries that attend to an encoder's memory: batch over data, heads over model."""

import jax
import jax.numpy as jnp
from jax.sharding import AbstractMesh, AxisType, NamedSharding
from jax.sharding import PartitionSpec as P

mesh = AbstractMesh((4, 2), ("data", "model"), axis_types=(AxisType.Auto,) * 2)
f32, i32 = jnp.float32, jnp.int32


def s(*spec):
    return NamedSharding(mesh, P(*spec))


def attend(p, x, memory):
    q = jnp.einsum("btd,dhk->bthk", x, p["q"])
    k = jnp.einsum("bsd,dhk->bshk", memory, p["k"])
    v = jnp.einsum("bsd,dhk->bshk", memory, p["v"])
    weights = jax.nn.softmax(jnp.einsum("bthk,bshk->bhts", q, k) / 4.0, axis=-1)
    return x + jnp.einsum("bhts,bshk,hkd->btd", weights, v, p["o"])


specs = {"q": s(None, "model"), "k": s(None, "model"), "v": s(None, "model"), "o": s("model")}
jitted = jax.jit(attend, in_shardings=(specs, s("data"), s("data")), out_shardings=s("data"))
heads = jax.ShapeDtypeStruct((128, 8, 16), f32)
arguments = (
    {"q": heads, "k": heads, "v": heads, "o": jax.ShapeDtypeStruct((8, 16, 128), f32)},
    jax.ShapeDtypeStruct((16, 64, 128), f32),
    jax.ShapeDtypeStruct((16, 128, 128), f32),
)
