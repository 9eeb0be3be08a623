"""A perceptron trained by Adam, its moments sharded as its weights."""

import jax
import jax.numpy as jnp
from jax.sharding import AbstractMesh, AxisType, NamedSharding
from jax.sharding import PartitionSpec as P

mesh = AbstractMesh((4, 2), ("data", "model"), axis_types=(AxisType.Auto,) * 2)
f32, i32 = jnp.float32, jnp.int32


def s(*spec):
    return NamedSharding(mesh, P(*spec))


def loss(params, x, y):
    h = jnp.tanh(x @ params["up"])
    return jnp.mean((h @ params["down"] - y) ** 2)


def update(p, g, m, v):
    m = 0.9 * m + 0.1 * g
    v = 0.99 * v + 0.01 * g * g
    return p - 1e-3 * m / (jnp.sqrt(v) + 1e-8), m, v


def step(params, mu, nu, x, y):
    grads = jax.grad(loss)(params, x, y)
    new = {name: update(params[name], grads[name], mu[name], nu[name]) for name in params}
    return tuple({name: one[place] for name, one in new.items()} for place in range(3))


specs = {"up": s(None, "model"), "down": s("model", None)}
replicated = {"up": s(), "down": s()}
jitted = jax.jit(
    step,
    in_shardings=(specs, specs, specs, s("data"), s("data")),
    out_shardings=(specs, specs, specs),
)
weights = {"up": jax.ShapeDtypeStruct((256, 1024), f32), "down": jax.ShapeDtypeStruct((1024, 256), f32)}
batch = jax.ShapeDtypeStruct((256, 256), f32)
arguments = (weights, weights, weights, batch, batch)
