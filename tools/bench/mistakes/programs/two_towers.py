"""Two towers that score pairs: queries over data, the towers' hidden units over model."""

import jax
import jax.numpy as jnp
from jax.sharding import AbstractMesh, AxisType, NamedSharding
from jax.sharding import PartitionSpec as P

mesh = AbstractMesh((4, 2), ("data", "model"), axis_types=(AxisType.Auto,) * 2)
f32, i32 = jnp.float32, jnp.int32


def s(*spec):
    return NamedSharding(mesh, P(*spec))


def tower(p, x):
    h = jax.nn.relu(x @ p["up"])
    return h @ p["down"]


def score(params, queries, items):
    q = tower(params["query"], queries)
    d = tower(params["item"], items)
    return jnp.sum(q * d, axis=-1)


specs = {"up": s(None, "model"), "down": s("model", None)}
jitted = jax.jit(
    score,
    in_shardings=({"query": specs, "item": specs}, s("data"), s("data")),
    out_shardings=s("data"),
)
sizes = {"up": jax.ShapeDtypeStruct((256, 1024), f32), "down": jax.ShapeDtypeStruct((1024, 256), f32)}
rows = jax.ShapeDtypeStruct((512, 256), f32)
arguments = ({"query": sizes, "item": sizes}, rows, rows)
