"""Scans, loops and branches, whose types must stay."""

import jax
import jax.numpy as jnp
from integration.explicit_errors.programs.feedforward import D, M, array
from jax.sharding import PartitionSpec as P


def layers(x, up, down):
    def layer(h, weights):
        first, second = weights
        out = jnp.matmul(jax.nn.relu(h @ first), second, out_sharding=P("data", None))
        return h + out, None

    h, _ = jax.lax.scan(layer, x, (up, down))
    return h


def layers_arguments():
    return array((64, D), 128), array(6, 128, (256, M)), array(6, (256, M), 128)


def microbatches(params, batches):
    """Gradients are summed over microbatches."""

    def loss(w, x):
        return jnp.mean(jax.nn.relu(x @ w) ** 2)

    def step(total, x):
        return total + jax.grad(loss)(params, x), None

    zeros = jax.reshard(jnp.zeros(params.shape), P(None, "model"))
    total, _ = jax.lax.scan(step, zeros, batches)
    return params - 0.1 * total


def microbatches_arguments():
    return array(64, (128, M)), array(4, (32, D), 64)


def recurrent(xs, w, u):
    def cell(h, x):
        h = jnp.tanh(x @ w + jnp.matmul(h, u, out_sharding=P("data", "model")))
        return h, h

    start = jnp.zeros((32, 128))
    start = jax.reshard(start, P("data", "model"))
    _, hs = jax.lax.scan(cell, start, xs)
    return hs


def recurrent_arguments():
    return array(8, (32, D), 64), array(64, (128, M)), array(128, (128, M))


def iterations(matrix, start):
    """Power iteration: the vector comes back as it went."""

    def body(_, v):
        v = jnp.matmul(matrix, v, out_sharding=P("data"))
        v = jax.reshard(v, P("model"))
        return v * jax.lax.rsqrt(jnp.sum(v * v))

    return jax.lax.fori_loop(0, 10, body, start)


def iterations_arguments():
    return array((128, D), (128, M)), array((128, M))


def branches(flag, x, w):
    def dense(x):
        return jnp.matmul(x, w, out_sharding=P("data", None))

    def skip(x):
        return jax.reshard(x, P("data", None))

    return jax.lax.cond(flag, dense, skip, x)


def branches_arguments():
    return array(dtype="bool"), array((64, D), (64, M)), array((64, M), 64)


def constraint(x, w):
    h = x @ w
    h = jax.reshard(h, P("data", None))
    return jax.nn.softmax(h, axis=-1)


def constraint_arguments():
    return array((64, D), 64), array(64, (128, M))


def local(x):
    """Each device normalizes its rows."""
    rows = jax.reshard(x, P(("data", "model"), None))
    return jax.shard_map(
        lambda a: a / jnp.sum(a, axis=1, keepdims=True), in_specs=P(("data", "model")), out_specs=P(("data", "model"))
    )(rows)


def local_arguments():
    return (array((64, D), (64, M)),)


def optimizer(state, x, y):
    """Steps of gradient descent with momentum, the state a dict."""

    def step(state, batch):
        x, y = batch
        grads = jax.grad(lambda w: jnp.mean((x @ w - y) ** 2))(state["w"])
        momentum = 0.9 * state["m"] + grads
        return {"w": state["w"] - 0.1 * momentum, "m": momentum}, None

    start = {"w": state, "m": jax.reshard(jnp.zeros(state.shape), P(None, "model"))}
    end, _ = jax.lax.scan(step, start, (x, y))
    return end["w"]


def optimizer_arguments():
    return array(64, (32, M)), array(4, (32, D), 64), array(4, (32, D), (32, M))


def choice(which, x, w):
    def rows(x):
        return jax.reshard(x, P("data", None))

    def dense(x):
        return jnp.matmul(x, w, out_sharding=P("data", None))

    def nothing(x):
        return jnp.zeros_like(x, out_sharding=P("data", None))

    return jax.lax.switch(which, [rows, dense, nothing], x)


def choice_arguments():
    return array(dtype="int32"), array((64, D), (64, M)), array((64, M), 64)


def remembered(x, params):
    """Layers that are computed anew in the backward pass."""

    @jax.checkpoint
    def layer(h, w):
        up, down = w
        return h + jnp.matmul(jnp.tanh(h @ up), down, out_sharding=P("data", None))

    def loss(params):
        h = x
        for w in params:
            h = layer(h, w)
        return jnp.mean(h * h)

    return jax.grad(loss)(params)


def remembered_arguments():
    return array((64, D), 128), [(array(128, (256, M)), array((256, M), 128))] * 2
