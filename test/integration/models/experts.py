"""Mixtures of experts and embeddings: values that choose where they go."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from .program import Case, Draw, P, Pin, program


@program(mesh=(4, 2), tolerance=1e-4)
def experts_dispatch(pin: Pin) -> Case:
    """Top-2 routing with capacity by one-hot dispatch (GShard); tokens over x, then experts over x, units over y."""
    draw = Draw(40)

    def apply(x: Any, gate: Any, up: Any, down: Any) -> Any:
        groups, tokens, _ = x.shape
        weights, index = lax.top_k(jax.nn.softmax(x @ gate), 2)
        chosen = jax.nn.one_hot(index, 8)  # group, token, choice, expert
        flat = chosen.transpose(0, 2, 1, 3).reshape(groups, 2 * tokens, 8)
        place = (jnp.cumsum(flat, axis=1) - flat).reshape(groups, 2, tokens, 8).transpose(0, 2, 1, 3)
        slot = jax.nn.one_hot(jnp.sum(place * chosen, -1).astype(jnp.int32), 6)
        dispatch = jnp.einsum("gtke,gtkc->gtec", chosen, slot)
        combine = jnp.einsum("gtk,gtke,gtkc->gtec", weights, chosen, slot)
        inputs = pin(jnp.einsum("gtec,gtm->egcm", dispatch, x), "x", None, None, None)
        hidden = jax.nn.relu(jnp.einsum("egcm,emh->egch", inputs, up))
        outputs = pin(jnp.einsum("egch,ehm->egcm", hidden, down), "x", None, None, None)
        return jnp.einsum("gtec,egcm->gtm", combine, outputs)

    arguments = (
        draw.normal(8, 16, 32),
        draw.weight(32, 8),
        draw.weight(8, 32, 64, fan=32),
        draw.weight(8, 64, 32, fan=64),
    )
    specs = (P("x"), P(), P("x", None, "y"), P("x", "y", None))
    return Case(apply, arguments, specs, P("x"))


@program(mesh=(8,), tolerance=1e-4)
def experts_sorted(pin: Pin) -> Case:
    """Top-1 routing by sorting tokens to their expert and back; experts over all devices."""
    draw = Draw(41)

    def apply(x: Any, gate: Any, weights: Any) -> Any:
        expert = jnp.argmax(x @ gate, -1)
        order = jnp.argsort(expert, stable=True)
        taken, of = x[order], expert[order]
        every = jnp.einsum("tm,emh->eth", taken, weights)
        picked = jnp.take_along_axis(every, of[None, :, None], axis=0)[0]
        return jnp.zeros_like(picked).at[order].set(picked)

    def oracle(x: Any, gate: Any, weights: Any) -> Any:
        return np.einsum("tm,tmh->th", x, weights[(x @ gate).argmax(-1)])

    arguments = (draw.normal(32, 16), draw.weight(16, 8), draw.weight(8, 16, 16, fan=16))
    return Case(apply, arguments, (P(), P(), P("x")), P(), oracle)


@program(mesh=(4, 2))
def embedding(pin: Pin) -> Case:
    """Looking up words in a table whose rows are split over y; the words over x."""
    draw = Draw(42)
    arguments = (draw.normal(100, 32), draw.integers(100, 16, 8))
    return Case(lambda table, words: table[words], arguments, (P("y"), P("x")), P("x"), lambda t, w: t[w])


@program(mesh=(8,), tolerance=1e-4)
def embedding_train(pin: Pin) -> Case:
    """A step of SGD for skip-grams: both tables split by rows over all devices, gradients scattered into them."""
    draw = Draw(43)

    def loss(tables: Any, centre: Any, context: Any, noise: Any) -> Any:
        c, o, n = tables["in"][centre], tables["out"][context], tables["out"][noise]
        right = jax.nn.log_sigmoid(jnp.sum(c * o, -1))
        wrong = jax.nn.log_sigmoid(-jnp.einsum("bd,bkd->bk", c, n))
        return -jnp.mean(right + wrong.sum(-1))

    def step(tables: Any, *batch: Any) -> Any:
        value, grads = jax.value_and_grad(loss)(tables, *batch)
        return value, jax.tree.map(lambda t, g: t - 0.5 * g, tables, grads)

    tables = {"in": draw.normal(96, 16), "out": draw.normal(96, 16)}
    batch = (draw.integers(96, 32), draw.integers(96, 32), draw.integers(96, 32, 4))
    return Case(step, (tables, *batch), (P("x"), P(), P(), P()), (P(), P("x")))


@program(mesh=(2, 2, 2), tolerance=1e-4)
def cross_entropy_split_classes(pin: Pin) -> Case:
    """Softmax cross entropy and its gradient with 98 classes over y and z (uneven), the batch over x."""
    draw = Draw(44)

    def value(x: Any, w: Any, labels: Any) -> Any:
        scores = pin(x @ w, "x", ("y", "z"))
        picked = jnp.take_along_axis(scores, labels[:, None], axis=1)[:, 0]
        return jnp.mean(jax.nn.logsumexp(scores, axis=1) - picked)

    arguments = (draw.normal(16, 32), draw.weight(32, 98), draw.integers(98, 16))
    return Case(jax.value_and_grad(value), arguments, (P("x"), P(), P("x")), (P(), P("x")))
