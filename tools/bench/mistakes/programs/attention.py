"""Self-attention and its output: batch over data, heads over model."""

import jax
import jax.numpy as jnp
from jax.sharding import AbstractMesh, AxisType, NamedSharding
from jax.sharding import PartitionSpec as P

mesh = AbstractMesh((4, 2), ("data", "model"), axis_types=(AxisType.Auto,) * 2)
f32, i32 = jnp.float32, jnp.int32


def s(*spec):
    return NamedSharding(mesh, P(*spec))


def attend(p, x):
    q = jnp.einsum("bsd,dhk->bshk", x, p["q"])
    k = jnp.einsum("bsd,dhk->bshk", x, p["k"])
    v = jnp.einsum("bsd,dhk->bshk", x, p["v"])
    scores = jnp.einsum("bqhk,bthk->bhqt", q, k)
    weights = jax.nn.softmax(scores, axis=-1)
    o = jnp.einsum("bhqt,bthk->bqhk", weights, v)
    return jnp.einsum("bqhk,hkd->bqd", o, p["o"])


specs = {"q": s(None, "model"), "k": s(None, "model"), "v": s(None, "model"), "o": s("model")}
jitted = jax.jit(attend, in_shardings=(specs, s("data")), out_shardings=s("data"))
arguments = (
    {
        "q": jax.ShapeDtypeStruct((256, 8, 32), f32),
        "k": jax.ShapeDtypeStruct((256, 8, 32), f32),
        "v": jax.ShapeDtypeStruct((256, 8, 32), f32),
        "o": jax.ShapeDtypeStruct((8, 32, 256), f32),
    },
    jax.ShapeDtypeStruct((8, 128, 256), f32),
)
