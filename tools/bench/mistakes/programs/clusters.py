"""A step of k-means: points over all devices, centres whole."""

import jax
import jax.numpy as jnp
from jax.sharding import AbstractMesh, AxisType, NamedSharding
from jax.sharding import PartitionSpec as P

mesh = AbstractMesh((4, 2), ("data", "model"), axis_types=(AxisType.Auto,) * 2)
f32, i32 = jnp.float32, jnp.int32


def s(*spec):
    return NamedSharding(mesh, P(*spec))


def step(centres, points):
    distances = jnp.sum(points**2, -1)[:, None] - 2 * points @ centres.T + jnp.sum(centres**2, -1)
    nearest = jax.nn.one_hot(jnp.argmin(distances, -1), centres.shape[0], dtype=f32)
    counts = jnp.sum(nearest, 0)
    return (nearest.T @ points) / jnp.maximum(counts, 1)[:, None]


jitted = jax.jit(step, in_shardings=(s(), s(("data", "model"))), out_shardings=s())
arguments = (jax.ShapeDtypeStruct((16, 32), f32), jax.ShapeDtypeStruct((8192, 32), f32))
