"""Patches of images that a perceptron mixes, and channels that another mixes: images over all devices."""

import jax
import jax.numpy as jnp
from jax.sharding import AbstractMesh, AxisType, NamedSharding
from jax.sharding import PartitionSpec as P

mesh = AbstractMesh((4, 2), ("data", "model"), axis_types=(AxisType.Auto,) * 2)
f32, i32 = jnp.float32, jnp.int32


def s(*spec):
    return NamedSharding(mesh, P(*spec))


def mlp(x, p):
    return jax.nn.gelu(x @ p["up"]) @ p["down"]


def mixer(params, images):
    x = images
    for p in params:
        x = x + mlp(x.swapaxes(1, 2), p["patches"]).swapaxes(1, 2)
        x = x + mlp(x, p["channels"])
    return x.mean(axis=1)


jitted = jax.jit(mixer, in_shardings=(s(), s(("data", "model"))), out_shardings=s(("data", "model")))
patches = {"up": jax.ShapeDtypeStruct((16, 64), f32), "down": jax.ShapeDtypeStruct((64, 16), f32)}
channels = {"up": jax.ShapeDtypeStruct((32, 128), f32), "down": jax.ShapeDtypeStruct((128, 32), f32)}
arguments = ([{"patches": patches, "channels": channels}] * 2, jax.ShapeDtypeStruct((256, 16, 32), f32))
