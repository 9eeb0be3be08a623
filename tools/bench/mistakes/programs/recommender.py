"""Ratings from an embedding, trained by gradient descent: ratings over data, columns of the table over all devices."""

import jax
import jax.numpy as jnp
from jax.sharding import AbstractMesh, AxisType, NamedSharding
from jax.sharding import PartitionSpec as P

mesh = AbstractMesh((4, 2), ("data", "model"), axis_types=(AxisType.Auto,) * 2)
f32, i32 = jnp.float32, jnp.int32


def s(*spec):
    return NamedSharding(mesh, P(*spec))


def loss(params, users, ratings):
    x = params["table"][users]
    h = jax.nn.relu(x @ params["up"])
    return jnp.mean((h @ params["out"] - ratings) ** 2)


def step(params, users, ratings):
    grads = jax.grad(loss)(params, users, ratings)
    return jax.tree.map(lambda p, g: p - 0.1 * g, params, grads)


specs = {"table": s(None, ("model", "data")), "up": s(None, "model"), "out": s("model")}
jitted = jax.jit(step, in_shardings=(specs, s("data"), s("data")), out_shardings=specs)
arguments = (
    {
        "table": jax.ShapeDtypeStruct((8192, 64), f32),
        "up": jax.ShapeDtypeStruct((64, 128), f32),
        "out": jax.ShapeDtypeStruct((128,), f32),
    },
    jax.ShapeDtypeStruct((512,), i32),
    jax.ShapeDtypeStruct((512,), f32),
)
