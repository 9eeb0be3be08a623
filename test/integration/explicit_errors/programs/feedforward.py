"""Layers of a feed-forward network, with weights over 'model' and the batch over 'data'."""

import jax
import jax.numpy as jnp
from jax.sharding import NamedSharding
from jax.sharding import PartitionSpec as P


def array(*dims, dtype="float32"):
    """The type of an argument: sizes, each alone or with its axis."""
    sizes = [dim[0] if isinstance(dim, tuple) else dim for dim in dims]
    axes = [dim[1] if isinstance(dim, tuple) else None for dim in dims]
    return jax.ShapeDtypeStruct(sizes, dtype, sharding=NamedSharding(jax.sharding.get_mesh(), P(*axes)))


D, M = "data", "model"


def mlp(x, up, down):
    h = jax.nn.gelu(jnp.einsum("bd,df->bf", x, up))
    return jnp.einsum("bf,fd->bd", h, down, out_sharding=P("data", None))


def mlp_arguments():
    return array((64, D), 128), array(128, (512, M)), array((512, M), 128)


def mlp_train(params, x, y):
    def loss(params):
        h = jax.nn.relu(x @ params["up"])
        out = jnp.matmul(h, params["down"], out_sharding=P("data", None))
        return jnp.mean((out - y) ** 2)

    return jax.tree.map(lambda p, g: p - 0.1 * g, params, jax.grad(loss)(params))


def mlp_train_arguments():
    return {"up": array(128, (512, M)), "down": array((512, M), 128)}, array((64, D), 128), array((64, D), 128)


def gated(x, gate, up, down):
    g = jnp.dot(x, gate)
    u = jnp.dot(x, up)
    h = jax.nn.silu(g) * u
    return x + jnp.dot(h, down, out_sharding=P("data", None))


def gated_arguments():
    return array((64, D), 128), array(128, (256, M)), array(128, (256, M)), array((256, M), 128)


def dense(x, w):
    """One layer, which two functions call."""
    return jnp.matmul(x, w, out_sharding=P("data", None))


def towers(x, user, item):
    def tower(h, layers):
        for first, second in layers:
            h = dense(jax.nn.relu(h @ first), second)
        return h

    return jnp.sum(tower(x, user) * tower(x, item), axis=1)


def towers_arguments():
    layers = [(array(64, (128, M)), array((128, M), 64))] * 2
    return array((32, D), 64), layers, layers


def fsdp(x, w):
    """Weights over 'data', which are gathered where they are used."""
    h = jnp.matmul(x, jax.reshard(w, P(None, None)))
    return jax.nn.relu(h)


def fsdp_arguments():
    return array((256, D), 64), array(64, (64, D))


def two_layers(x, w):
    for up, down in w:
        h = jax.nn.relu(x @ up)
        x = x + jnp.matmul(h, down, out_sharding=P("data", None))
    return x


def two_layers_arguments():
    return array((64, D), 128), [(array(128, (256, M)), array((256, M), 128))] * 2
