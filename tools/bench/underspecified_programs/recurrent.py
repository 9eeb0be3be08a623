"""Recurrent networks: one weight used at every step of a scan, so what is sent in the loop is sent many times."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp

from .layers import sgd
from .program import DATA, DATA_MODEL, Annotations, Case, Draw, P, Pin, program

STEPS, WIDTH = 32, 128


def lstm(pin: Pin, p: Any, x: Any) -> Any:
    """x [step, batch, feature] -> the last state."""
    p = pin("weights", p)

    def step(carry: Any, x: Any) -> Any:
        h, c = carry
        gates = pin("gates", x @ p["wx"] + h @ p["wh"] + p["b"])
        i, f, g, o = jnp.split(gates, 4, axis=-1)
        c = pin("state", jax.nn.sigmoid(f) * c + jax.nn.sigmoid(i) * jnp.tanh(g))
        h = pin("state", jax.nn.sigmoid(o) * jnp.tanh(c))
        return (h, c), None

    zero = jnp.zeros((x.shape[1], p["wh"].shape[0]))
    return jax.lax.scan(step, (zero, zero), x)[0][0]


def train(pin: Pin, p: Any, x: Any, y: Any) -> Any:
    def loss(p: Any) -> Any:
        return jnp.mean((lstm(pin, p, x) @ p["head"] - y) ** 2)

    value, gradients = jax.value_and_grad(loss)(p)
    return value, sgd(p, pin("gradients", gradients))


def arguments(batch: int, seed: int) -> tuple[Any, ...]:
    draw = Draw(seed)
    p = {
        "wx": draw.weight(WIDTH, 4 * WIDTH),
        "wh": draw.weight(WIDTH, 4 * WIDTH),
        "b": draw.normal(4 * WIDTH, scale=0.1),
        "head": draw.weight(WIDTH, 16),
    }
    return p, draw.normal(STEPS, batch, WIDTH), draw.normal(batch, 16)


@program(mesh=DATA, tolerance=1e-3)
def lstm_fsdp_train() -> Case:
    """A training step; rows of the weights and the batch over one axis. An expert exchanges states, not weights."""
    split = {"wx": P("data", None), "wh": P("data", None), "b": P("data"), "head": P("data", None)}
    specs = (split, P(None, "data"), P("data"))
    columns = {"wx": P(None, "data"), "wh": P(None, "data"), "b": P("data"), "head": P()}
    pins = {"weights": columns, "gates": P(), "state": P(), "gradients": split}
    return Case(train, arguments(64, 90), Annotations(specs), Annotations(specs, (P(), split), pins))


@program(mesh=DATA_MODEL, tolerance=1e-3)
def lstm_tensor_forward() -> Case:
    """Forward with the gates' columns over model and the batch over data."""
    p, x, _ = arguments(64, 91)
    split = {"wx": P(None, "model"), "wh": P(None, "model"), "b": None, "head": None}
    specs = (split, P(None, "data"))
    kept = {**split, "b": P(), "head": P()}
    pins = {"weights": P(), "gates": P("data", None), "state": P("data", None)}
    free, expert = Annotations(specs), Annotations((kept, P(None, "data")), P("data", None), pins)
    return Case(lstm, (p, x), free, expert)
