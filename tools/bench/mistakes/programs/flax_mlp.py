"""A perceptron of flax, trained by optax's Adam: batch over data, hidden units over model."""

import flax.linen as nn
import jax
import jax.numpy as jnp
import optax
from jax.sharding import AbstractMesh, AxisType, NamedSharding
from jax.sharding import PartitionSpec as P

mesh = AbstractMesh((4, 2), ("data", "model"), axis_types=(AxisType.Auto,) * 2)
f32, i32 = jnp.float32, jnp.int32


def s(*spec):
    return NamedSharding(mesh, P(*spec))


class Network(nn.Module):
    @nn.compact
    def __call__(self, x):
        x = nn.Dense(1024)(x)
        x = nn.relu(x)
        return nn.Dense(256)(x)


network, optimizer = Network(), optax.sgd(1e-2, momentum=0.9)


def loss(params, x, y):
    out = network.apply(params, x)
    return jnp.mean((out - y) ** 2)


def step(params, state, x, y):
    grads = jax.grad(loss)(params, x, y)
    updates, state = optimizer.update(grads, state, params)
    return optax.apply_updates(params, updates), state


def spec_of(path, leaf):
    names = [getattr(key, "key", None) for key in path]
    if "kernel" in names:
        return s(None, "model") if "Dense_0" in names else s("model", None)
    return s("model") if "Dense_0" in names and "bias" in names else s()


params = jax.eval_shape(network.init, jax.random.key(0), jax.ShapeDtypeStruct((256, 256), f32))
state = jax.eval_shape(optimizer.init, params)
param_specs = jax.tree_util.tree_map_with_path(spec_of, params)
state_specs = jax.tree_util.tree_map_with_path(spec_of, state)
jitted = jax.jit(
    step,
    in_shardings=(param_specs, state_specs, s("data"), s("data")),
    out_shardings=(param_specs, state_specs),
)
batch = jax.ShapeDtypeStruct((256, 256), f32)
arguments = (params, state, batch, batch)
