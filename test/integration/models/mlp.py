"""Perceptrons: forward, SGD and Adam steps, over data, model and both; sizes that divide and that do not."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from .program import Case, Draw, P, Pin, program

PARAMS = {"w1": P(None, "y"), "b1": P("y"), "w2": P("y", None), "b2": P(), "w3": P(None, "y"), "b3": P("y")}


def parameters(features: int, hidden: int, classes: int) -> dict[str, Any]:
    draw = Draw(1)
    return {
        "w1": draw.weight(features, hidden),
        "b1": draw.normal(hidden, scale=0.1),
        "w2": draw.weight(hidden, hidden),
        "b2": draw.normal(hidden, scale=0.1),
        "w3": draw.weight(hidden, classes),
        "b3": draw.normal(classes, scale=0.1),
    }


def forward(p: Any, x: Any) -> Any:
    h = jax.nn.relu(x @ p["w1"] + p["b1"])
    h = jax.nn.relu(h @ p["w2"] + p["b2"])
    return h @ p["w3"] + p["b3"]


def loss(p: Any, x: Any, labels: Any) -> Any:
    logits = forward(p, x)
    return -jnp.mean(jnp.take_along_axis(jax.nn.log_softmax(logits), labels[:, None], axis=1))


def adam(p: Any, m: Any, v: Any, g: Any, rate: float = 1e-2) -> Any:
    """The first step of Adam -> parameters and both moments."""
    m = jax.tree.map(lambda m, g: 0.9 * m + 0.1 * g, m, g)
    v = jax.tree.map(lambda v, g: 0.999 * v + 0.001 * g * g, v, g)
    p = jax.tree.map(lambda p, m, v: p - rate * (m / 0.1) / (jnp.sqrt(v / 0.001) + 1e-3), p, m, v)
    return p, m, v


def zeros(tree: Any) -> Any:
    return jax.tree.map(np.zeros_like, tree)


def batch(size: int, features: int, classes: int) -> tuple[Any, Any]:
    draw = Draw(2)
    return draw.normal(size, features), draw.integers(classes, size)


def numpy_forward(p: Any, x: Any) -> Any:
    h = np.maximum(x @ p["w1"] + p["b1"], 0)
    h = np.maximum(h @ p["w2"] + p["b2"], 0)
    return h @ p["w3"] + p["b3"]


@program(mesh=(4, 2))
def mlp_forward(pin: Pin) -> Case:
    """Three layers, batch over x, columns then rows of the weights over y."""
    p, (x, _) = parameters(64, 128, 16), batch(32, 64, 16)
    return Case(forward, (p, x), (PARAMS, P("x", None)), P("x", "y"), numpy_forward)


@program(mesh=(8,))
def mlp_data_parallel_sgd(pin: Pin) -> Case:
    """A step of SGD with the batch over all devices and whole weights."""

    def step(p: Any, x: Any, y: Any) -> Any:
        value, grads = jax.value_and_grad(loss)(p, x, y)
        return value, jax.tree.map(lambda p, g: p - 0.1 * g, p, grads)

    return Case(step, (parameters(64, 64, 16), *batch(64, 64, 16)), (P(), P("x"), P("x")), (P(), P()))


@program(mesh=(4, 2))
def mlp_sgd(pin: Pin) -> Case:
    """A step of SGD, data and tensor parallel."""

    def step(p: Any, x: Any, y: Any) -> Any:
        value, grads = jax.value_and_grad(loss)(p, x, y)
        return value, jax.tree.map(lambda p, g: p - 0.1 * g, p, grads)

    return Case(step, (parameters(64, 128, 16), *batch(32, 64, 16)), (PARAMS, P("x"), P("x")), (P(), PARAMS))


@program(mesh=(2, 2, 2), tolerance=1e-4)
def mlp_adam(pin: Pin) -> Case:
    """A step of Adam, data over x, tensor over y, moments split once more over z (ZeRO)."""
    wide = {"w1": P("z", "y"), "b1": P("y"), "w2": P("y", "z"), "b2": P("z"), "w3": P("z", "y"), "b3": P("y")}

    def step(p: Any, m: Any, v: Any, x: Any, y: Any) -> Any:
        value, grads = jax.value_and_grad(loss)(p, x, y)
        return value, adam(p, m, v, grads)

    p = parameters(64, 128, 16)
    arguments = (p, zeros(p), zeros(p), *batch(32, 64, 16))
    return Case(step, arguments, (PARAMS, wide, wide, P("x"), P("x")), (P(), (PARAMS, wide, wide)))


@program(mesh=(2, 3))
def mlp_2x3(pin: Pin) -> Case:
    """Forward on 2x3 devices: batch over 2, hidden units over 3."""
    p, (x, _) = parameters(30, 96, 12), batch(16, 30, 12)
    return Case(forward, (p, x), (PARAMS, P("x", None)), P("x", "y"), numpy_forward)


@program(mesh=(4, 2), tolerance=1e-4)
def mlp_uneven(pin: Pin) -> Case:
    """A step of SGD whose batch, hidden units and classes divide by no axis."""

    def step(p: Any, x: Any, y: Any) -> Any:
        def pinned_loss(p: Any) -> Any:
            h = pin(jax.nn.relu(pin(x, "x", None) @ p["w1"] + p["b1"]), "x", "y")
            h = pin(jax.nn.relu(h @ p["w2"] + p["b2"]), "x", None)
            logits = pin(h @ p["w3"] + p["b3"], "x", "y")
            return -jnp.mean(jnp.take_along_axis(jax.nn.log_softmax(logits), y[:, None], axis=1))

        value, grads = jax.value_and_grad(pinned_loss)(p)
        return value, jax.tree.map(lambda p, g: p - 0.1 * g, p, grads)

    return Case(step, (parameters(30, 77, 11), *batch(27, 30, 11)), (P(), P(), P()), (P(), P()))


@program(mesh=(8,))
def mlp_pipeline_weights(pin: Pin) -> Case:
    """Eight layers scanned, their stacked weights split over the layers' features (gathered layer by layer)."""
    draw = Draw(3)

    def apply(w: Any, x: Any) -> Any:
        return jax.lax.scan(lambda h, w: (jnp.tanh(h @ w), None), x, w)[0]

    def numpy_apply(w: Any, x: Any) -> Any:
        for layer in w:
            x = np.tanh(x @ layer)
        return x

    w = np.stack([draw.weight(32, 32) for _ in range(8)])
    return Case(apply, (w, draw.normal(64, 32)), (P(None, "x", None), P("x", None)), P("x", None), numpy_apply)


@program(mesh=(4, 2))
def mixer_mlp(pin: Pin) -> Case:
    """An MLP-Mixer block: one perceptron over tokens, one over channels, layer norms between."""
    draw = Draw(4)

    def norm(x: Any) -> Any:
        centred = x - x.mean(-1, keepdims=True)
        return centred * jax.lax.rsqrt(jnp.mean(centred**2, -1, keepdims=True) + 1e-5)

    def block(x: Any, t1: Any, t2: Any, c1: Any, c2: Any) -> Any:
        y = jnp.einsum("btc,ts->bsc", norm(x), t1)
        x = x + jnp.einsum("bsc,st->btc", jax.nn.gelu(y), t2)
        return x + jax.nn.gelu(norm(x) @ c1) @ c2

    arguments = (
        draw.normal(8, 16, 32),
        draw.weight(16, 32),
        draw.weight(32, 16),
        draw.weight(32, 64),
        draw.weight(64, 32),
    )
    specs = (P("x", None, None), P(None, "y"), P("y", None), P(None, "y"), P("y", None))
    return Case(block, arguments, specs, P("x", None, None))
