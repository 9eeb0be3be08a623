"""A small image classifier: images over data, everything else whole."""

import jax
import jax.numpy as jnp
from jax.sharding import AbstractMesh, AxisType, NamedSharding
from jax.sharding import PartitionSpec as P

mesh = AbstractMesh((4, 2), ("data", "model"), axis_types=(AxisType.Auto,) * 2)
f32, i32 = jnp.float32, jnp.int32


def s(*spec):
    return NamedSharding(mesh, P(*spec))


def conv(x, w):
    return jax.lax.conv_general_dilated(x, w, (1, 1), "SAME", dimension_numbers=("NHWC", "HWIO", "NHWC"))


def classify(params, images):
    x = jax.nn.relu(conv(images, params["first"]))
    x = jax.nn.relu(conv(x, params["second"]))
    x = x.mean(axis=(1, 2))
    return x @ params["head"]


jitted = jax.jit(classify, in_shardings=(s(), s(("data", "model"))), out_shardings=s(("data", "model")))
arguments = (
    {
        "first": jax.ShapeDtypeStruct((3, 3, 3, 32), f32),
        "second": jax.ShapeDtypeStruct((3, 3, 32, 32), f32),
        "head": jax.ShapeDtypeStruct((32, 10), f32),
    },
    jax.ShapeDtypeStruct((64, 32, 32, 3), f32),
)
