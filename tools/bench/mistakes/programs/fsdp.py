"""Weights over data too, gathered where they are used: the batch over data, and activations held there."""

import jax
import jax.numpy as jnp
from jax.sharding import AbstractMesh, AxisType, NamedSharding
from jax.sharding import PartitionSpec as P

mesh = AbstractMesh((4, 2), ("data", "model"), axis_types=(AxisType.Auto,) * 2)
f32, i32 = jnp.float32, jnp.int32


def s(*spec):
    return NamedSharding(mesh, P(*spec))


def layer(w, x):
    h = jnp.tanh(x @ w)
    return jax.lax.with_sharding_constraint(h, s("data"))


def loss(params, x):
    for w in params:
        x = layer(w, x)
    return jnp.mean(x**2)


def step(params, x):
    grads = jax.grad(loss)(params, x)
    return [p - 0.1 * g for p, g in zip(params, grads, strict=True)]


specs = s("data")
jitted = jax.jit(step, in_shardings=(specs, s("data")), out_shardings=specs)
arguments = ([jax.ShapeDtypeStruct((128, 128), f32)] * 3, jax.ShapeDtypeStruct((2048, 128), f32))
