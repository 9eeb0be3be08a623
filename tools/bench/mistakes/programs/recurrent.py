"""A recurrent network under scan over time: batch over data, units over model at the borders."""

import jax
import jax.numpy as jnp
from jax.sharding import AbstractMesh, AxisType, NamedSharding
from jax.sharding import PartitionSpec as P

mesh = AbstractMesh((4, 2), ("data", "model"), axis_types=(AxisType.Auto,) * 2)
f32, i32 = jnp.float32, jnp.int32


def s(*spec):
    return NamedSharding(mesh, P(*spec))


def cell(w, h, x):
    h = jnp.tanh(h @ w + x)
    return h, None


def last(params, xs):
    inputs = jnp.einsum("tbd,dh->tbh", xs, params["in"])
    h = jnp.zeros((xs.shape[1], params["w"].shape[0]), f32)
    h, _ = jax.lax.scan(lambda h, x: cell(params["w"], h, x), h, inputs)
    return h @ params["out"]


specs = {"in": s(), "w": s(), "out": s()}
jitted = jax.jit(last, in_shardings=(specs, s(None, ("data", "model"))), out_shardings=s(("data", "model")))
arguments = (
    {
        "in": jax.ShapeDtypeStruct((64, 128), f32),
        "w": jax.ShapeDtypeStruct((128, 128), f32),
        "out": jax.ShapeDtypeStruct((128, 16), f32),
    },
    jax.ShapeDtypeStruct((16, 64, 64), f32),
)
