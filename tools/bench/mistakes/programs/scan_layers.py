"""Residual layers under scan, forward and backward: batch over data, hidden units over model."""

import jax
import jax.numpy as jnp
from jax.sharding import AbstractMesh, AxisType, NamedSharding
from jax.sharding import PartitionSpec as P

mesh = AbstractMesh((4, 2), ("data", "model"), axis_types=(AxisType.Auto,) * 2)
f32, i32 = jnp.float32, jnp.int32


def s(*spec):
    return NamedSharding(mesh, P(*spec))


def layer(x, p):
    h = jax.nn.gelu(x @ p["up"])
    return x + h @ p["down"], None


def loss(params, x):
    x, _ = jax.lax.scan(layer, x, params)
    return jnp.mean(x**2)


def step(params, x):
    grads = jax.grad(loss)(params, x)
    return jax.tree.map(lambda p, g: p - 0.1 * g, params, grads)


specs = {"up": s(None, None, "model"), "down": s(None, "model", None)}
jitted = jax.jit(step, in_shardings=(specs, s("data")), out_shardings=specs)
arguments = (
    {"up": jax.ShapeDtypeStruct((4, 128, 512), f32), "down": jax.ShapeDtypeStruct((4, 512, 128), f32)},
    jax.ShapeDtypeStruct((512, 128), f32),
)
