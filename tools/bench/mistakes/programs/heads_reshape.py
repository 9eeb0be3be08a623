"""Attention whose heads come from one product and a reshape: batch over data, heads over model."""

import jax
import jax.numpy as jnp
from jax.sharding import AbstractMesh, AxisType, NamedSharding
from jax.sharding import PartitionSpec as P

mesh = AbstractMesh((4, 2), ("data", "model"), axis_types=(AxisType.Auto,) * 2)
f32, i32 = jnp.float32, jnp.int32


def s(*spec):
    return NamedSharding(mesh, P(*spec))


HEADS, SIZE = 8, 32


def split_heads(x):
    return x.reshape(*x.shape[:2], HEADS, SIZE)


def attend(p, x):
    q = split_heads(x @ p["q"])
    k = split_heads(x @ p["k"])
    v = split_heads(x @ p["v"])
    weights = jax.nn.softmax(jnp.einsum("bqhk,bthk->bhqt", q, k), axis=-1)
    o = jnp.einsum("bhqt,bthk->bqhk", weights, v)
    return o.reshape(*x.shape[:2], HEADS * SIZE) @ p["o"]


specs = {"q": s(None, "model"), "k": s(None, "model"), "v": s(None, "model"), "o": s("model")}
jitted = jax.jit(attend, in_shardings=(specs, s("data")), out_shardings=s("data"))
weight = jax.ShapeDtypeStruct((256, HEADS * SIZE), f32)
arguments = ({"q": weight, "k": weight, "v": weight, "o": weight}, jax.ShapeDtypeStruct((8, 128, 256), f32))
