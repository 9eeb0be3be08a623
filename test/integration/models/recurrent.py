"""Networks over time, by scan."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from .program import Case, Draw, P, Pin, program


def lstm_cell(p: Any, carry: Any, x: Any) -> Any:
    h, c = carry
    i, f, g, o = jnp.split(x @ p["wx"] + h @ p["wh"] + p["b"], 4, axis=-1)
    c = jax.nn.sigmoid(f) * c + jax.nn.sigmoid(i) * jnp.tanh(g)
    h = jax.nn.sigmoid(o) * jnp.tanh(c)
    return (h, c), h


def lstm_parameters(draw: Draw, features: int, hidden: int) -> Any:
    return {
        "wx": draw.weight(features, 4 * hidden),
        "wh": draw.weight(hidden, 4 * hidden),
        "b": draw.normal(4 * hidden, scale=0.1),
    }


@program(mesh=(8,), tolerance=1e-4)
def lstm(pin: Pin) -> Case:
    """Forward, the batch over all devices."""
    draw = Draw(50)

    def apply(p: Any, x: Any) -> Any:
        start = (jnp.zeros((16, 32)), jnp.zeros((16, 32)))
        return lax.scan(lambda c, x: lstm_cell(p, c, x), start, x)[1]

    def oracle(p: Any, x: Any) -> Any:
        def sigmoid(v: Any) -> Any:
            return 1 / (1 + np.exp(-v))

        h = c = np.zeros((16, 32), np.float32)
        out = []
        for t in x:
            i, f, g, o = np.split(t @ p["wx"] + h @ p["wh"] + p["b"], 4, axis=-1)
            c = sigmoid(f) * c + sigmoid(i) * np.tanh(g)
            h = sigmoid(o) * np.tanh(c)
            out.append(h)
        return np.stack(out)

    arguments = (lstm_parameters(draw, 16, 32), draw.normal(10, 16, 16))
    return Case(apply, arguments, (P(), P(None, "x")), P(None, "x"), oracle)


@program(mesh=(4, 2), tolerance=1e-4)
def lstm_train(pin: Pin) -> Case:
    """Gradients through time; batch over x, gates over y."""
    draw = Draw(51)

    def loss(p: Any, x: Any, y: Any) -> Any:
        start = (jnp.zeros((8, 16)), jnp.zeros((8, 16)))
        hidden = lax.scan(lambda c, x: lstm_cell(p, c, x), start, x)[1]
        return jnp.mean((hidden - y) ** 2)

    split = {"wx": P(None, "y"), "wh": P(None, "y"), "b": P("y")}
    arguments = (lstm_parameters(draw, 16, 16), draw.normal(6, 8, 16), draw.normal(6, 8, 16))
    return Case(jax.value_and_grad(loss), arguments, (split, P(None, "x"), P(None, "x")), (P(), split))


@program(mesh=(4, 2), tolerance=1e-4)
def gru_units(pin: Pin) -> Case:
    """A gated unit whose hidden state is split over y and gathered at each step; the batch over x."""
    draw = Draw(52)

    def cell(p: Any, h: Any, x: Any) -> Any:
        z = jax.nn.sigmoid(x @ p["wz"] + h @ p["uz"])
        r = jax.nn.sigmoid(x @ p["wr"] + h @ p["ur"])
        h = (1 - z) * h + z * jnp.tanh(x @ p["wh"] + (r * h) @ p["uh"])
        return pin(h, "x", "y"), None

    p = {name: draw.weight(16, 32) for name in ("wz", "wr", "wh")} | {
        name: draw.weight(32, 32) for name in ("uz", "ur", "uh")
    }

    def apply(p: Any, x: Any) -> Any:
        return lax.scan(lambda h, x: cell(p, h, x), jnp.zeros((8, 32)), x)[0]

    return Case(apply, (p, draw.normal(6, 8, 16)), ({name: P(None, "y") for name in p}, P(None, "x")), P("x", "y"))


@program(mesh=(4,), tolerance=1e-4)
def transducer(pin: Pin) -> Case:
    """The forward variables of an RNN transducer: a scan over time of a scan over labels, in log space."""
    draw = Draw(53)

    def value(blank: Any, label: Any) -> Any:
        steps = label.shape[2]

        def over_time(alpha: Any, at: Any) -> Any:
            blank, label = at  # [batch, labels + 1]

            def over_labels(left: Any, u: Any) -> Any:
                now = jnp.logaddexp(alpha[:, u] + blank[:, u], left + label[:, u - 1])
                return now, now

            first = alpha[:, 0] + blank[:, 0]
            rest = lax.scan(over_labels, first, jnp.arange(1, steps + 1))[1]
            return jnp.concatenate([first[:, None], rest.T], axis=1), None

        start = jnp.concatenate([jnp.zeros((8, 1)), jnp.full((8, steps), -1e9)], axis=1)
        return lax.scan(over_time, start, (blank, label))[0][:, -1]

    blank, label = -np.abs(draw.normal(5, 8, 5)), -np.abs(draw.normal(5, 8, 4))

    def oracle(blank: Any, label: Any) -> Any:
        alpha = np.full((8, 5), -1e9)
        alpha[:, 0] = 0
        for b, w in zip(blank, label, strict=True):
            new = alpha + b
            for u in range(1, 5):
                new[:, u] = np.logaddexp(alpha[:, u] + b[:, u], new[:, u - 1] + w[:, u - 1])
            alpha = new
        return alpha[:, -1].astype(np.float32)

    return Case(value, (blank, label), (P(None, "x"), P(None, "x")), P("x"), oracle)


@program(mesh=(8,), tolerance=1e-4)
def state_space(pin: Pin) -> Case:
    """A diagonal state space layer by associative_scan over time; channels over all devices."""
    draw = Draw(54)

    def apply(a: Any, b: Any, x: Any) -> Any:
        decay = jnp.broadcast_to(jax.nn.sigmoid(a), x.shape)

        def join(one: Any, other: Any) -> Any:
            return one[0] * other[0], one[1] * other[0] + other[1]

        return lax.associative_scan(join, (decay, b * x))[1]

    def oracle(a: Any, b: Any, x: Any) -> Any:
        h, out = np.zeros_like(x[0]), []
        for t in x:
            h = h / (1 + np.exp(-a)) + b * t
            out.append(h)
        return np.stack(out)

    arguments = (draw.normal(32), draw.normal(32), draw.normal(16, 4, 32))
    return Case(apply, arguments, (P("x"), P("x"), P(None, None, "x")), P(None, None, "x"), oracle)
