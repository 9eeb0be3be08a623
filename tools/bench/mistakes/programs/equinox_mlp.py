"""A model of equinox, its arrays as a tuple: batch over data, hidden units over model."""

import equinox as eqx
import jax
import jax.numpy as jnp
from jax.sharding import AbstractMesh, AxisType, NamedSharding
from jax.sharding import PartitionSpec as P

mesh = AbstractMesh((4, 2), ("data", "model"), axis_types=(AxisType.Auto,) * 2)
f32, i32 = jnp.float32, jnp.int32


def s(*spec):
    return NamedSharding(mesh, P(*spec))


model = eqx.nn.MLP(128, 128, 512, 2, use_bias=False, key=jax.random.key(0))
arrays, static = eqx.partition(model, eqx.is_array)


def loss(arrays, x, y):
    net = eqx.combine(arrays, static)
    out = jax.vmap(net)(x)
    return jnp.mean((out - y) ** 2)


def step(arrays, x, y):
    grads = jax.grad(loss)(arrays, x, y)
    return jax.tree.map(lambda p, g: p - 0.1 * g, arrays, grads)


specs = jax.tree.map(lambda array: s(), arrays)
weights = lambda net: [layer.weight for layer in net.layers]  # noqa: E731
specs = eqx.tree_at(weights, specs, [s("model", None), s(None, "model"), s(None, "model")])
jitted = jax.jit(step, in_shardings=(specs, s("data"), s("data")), out_shardings=specs)
batch = jax.ShapeDtypeStruct((256, 128), f32)
arguments = (jax.tree.map(lambda a: jax.ShapeDtypeStruct(a.shape, a.dtype), arrays), batch, batch)
