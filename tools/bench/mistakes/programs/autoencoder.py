"""An autoencoder of few weights, trained on a batch over all devices."""

import jax
import jax.numpy as jnp
from jax.sharding import AbstractMesh, AxisType, NamedSharding
from jax.sharding import PartitionSpec as P

mesh = AbstractMesh((4, 2), ("data", "model"), axis_types=(AxisType.Auto,) * 2)
f32, i32 = jnp.float32, jnp.int32


def s(*spec):
    return NamedSharding(mesh, P(*spec))


def loss(params, x):
    h = jnp.tanh(x @ params["encode"])
    return jnp.mean((h @ params["decode"] - x) ** 2)


def step(params, x):
    grads = jax.grad(loss)(params, x)
    return jax.tree.map(lambda p, g: p - 0.1 * g, params, grads)


jitted = jax.jit(step, in_shardings=(s(), s(("data", "model"))), out_shardings=s())
arguments = (
    {"encode": jax.ShapeDtypeStruct((64, 16), f32), "decode": jax.ShapeDtypeStruct((16, 64), f32)},
    jax.ShapeDtypeStruct((4096, 64), f32),
)
