"""Gradients of several small batches, summed under scan: each batch over all devices."""

import jax
import jax.numpy as jnp
from jax.sharding import AbstractMesh, AxisType, NamedSharding
from jax.sharding import PartitionSpec as P

mesh = AbstractMesh((4, 2), ("data", "model"), axis_types=(AxisType.Auto,) * 2)
f32, i32 = jnp.float32, jnp.int32


def s(*spec):
    return NamedSharding(mesh, P(*spec))


def loss(w, x):
    return jnp.mean(jnp.tanh(x @ w) ** 2)


def step(w, batches):
    def add(total, x):
        return total + jax.grad(loss)(w, x), None

    total, _ = jax.lax.scan(add, jnp.zeros_like(w), batches)
    return w - 0.01 * total


jitted = jax.jit(step, in_shardings=(s(), s(None, ("data", "model"))), out_shardings=s())
arguments = (jax.ShapeDtypeStruct((64, 32), f32), jax.ShapeDtypeStruct((4, 2048, 64), f32))
