"""A perceptron of two layers, trained by gradient descent: batch over data, hidden units over model."""

import jax
import jax.numpy as jnp
from jax.sharding import AbstractMesh, AxisType, NamedSharding
from jax.sharding import PartitionSpec as P

mesh = AbstractMesh((4, 2), ("data", "model"), axis_types=(AxisType.Auto,) * 2)
f32, i32 = jnp.float32, jnp.int32


def s(*spec):
    return NamedSharding(mesh, P(*spec))


def loss(params, x, y):
    h = jax.nn.relu(x @ params["up"])
    out = h @ params["down"]
    return jnp.mean((out - y) ** 2)


def step(params, x, y):
    grads = jax.grad(loss)(params, x, y)
    return jax.tree.map(lambda p, g: p - 0.1 * g, params, grads)


specs = {"up": s(None, "model"), "down": s("model", None)}
jitted = jax.jit(step, in_shardings=(specs, s("data"), s("data")), out_shardings=specs)
arguments = (
    {"up": jax.ShapeDtypeStruct((256, 1024), f32), "down": jax.ShapeDtypeStruct((1024, 256), f32)},
    jax.ShapeDtypeStruct((512, 256), f32),
    jax.ShapeDtypeStruct((512, 256), f32),
)
