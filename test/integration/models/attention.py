"""Attention in other forms: a split sequence, few keys, windows, linear time, and norms beside it."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from .program import Case, Draw, P, Pin, program


def softmax(x: Any) -> Any:
    e = np.exp(x - x.max(-1, keepdims=True))
    return e / e.sum(-1, keepdims=True)


@program(mesh=(8,), tolerance=1e-4)
def attention_split_queries(pin: Pin) -> Case:
    """Causal attention with queries, keys and values split over the sequence."""
    draw = Draw(20)

    def apply(q: Any, k: Any, v: Any) -> Any:
        scores = jnp.einsum("bqhd,bkhd->bhqk", q, k) * 16**-0.5
        causal = jnp.arange(64)[:, None] >= jnp.arange(64)[None, :]
        return jnp.einsum("bhqk,bkhd->bqhd", jax.nn.softmax(jnp.where(causal, scores, -1e9)), v)

    def oracle(q: Any, k: Any, v: Any) -> Any:
        scores = np.einsum("bqhd,bkhd->bhqk", q, k) * 16**-0.5
        return np.einsum("bhqk,bkhd->bqhd", softmax(np.where(np.tri(64) > 0, scores, -1e9)), v)

    arguments = tuple(draw.normal(2, 64, 4, 16) for _ in range(3))
    return Case(apply, arguments, (P(None, "x"),) * 3, P(None, "x"), oracle)


@program(mesh=(4, 2), tolerance=1e-4)
def attention_split_keys(pin: Pin) -> Case:
    """One query against a long cache split over its positions: flash decoding's sums."""
    draw = Draw(21)

    def apply(q: Any, k: Any, v: Any) -> Any:
        return jnp.einsum("bhk,bkhd->bhd", jax.nn.softmax(jnp.einsum("bhd,bkhd->bhk", q, k) / 4), v)

    def oracle(q: Any, k: Any, v: Any) -> Any:
        return np.einsum("bhk,bkhd->bhd", softmax(np.einsum("bhd,bkhd->bhk", q, k) / 4), v)

    arguments = (draw.normal(4, 8, 16), draw.normal(4, 128, 8, 16), draw.normal(4, 128, 8, 16))
    specs = (P(None, "y"), P(None, "x", "y"), P(None, "x", "y"))
    return Case(apply, arguments, specs, P(None, "y"), oracle)


@program(mesh=(2, 4), tolerance=1e-4)
def attention_grouped(pin: Pin) -> Case:
    """Grouped-query attention: eight query heads over y, two key heads; rotary positions; batch over x."""
    draw = Draw(22)

    def rotate(x: Any) -> Any:
        angle = jnp.arange(x.shape[1])[:, None] / 100.0 ** (jnp.arange(4) / 4)
        sin, cos = jnp.sin(angle)[:, None], jnp.cos(angle)[:, None]
        a, b = jnp.split(x, 2, axis=-1)
        return jnp.concatenate([a * cos - b * sin, b * cos + a * sin], axis=-1)

    def apply(x: Any, wq: Any, wk: Any, wv: Any, wo: Any) -> Any:
        q = rotate(jnp.einsum("bse,ehd->bshd", x, wq)).reshape(4, 16, 2, 4, 8)
        k, v = rotate(jnp.einsum("bse,ehd->bshd", x, wk)), jnp.einsum("bse,ehd->bshd", x, wv)
        weights = jax.nn.softmax(jnp.einsum("bsgnd,btgd->bgnst", q, k) * 8**-0.5)
        mixed = jnp.einsum("bgnst,btgd->bsgnd", weights, v).reshape(4, 16, 8, 8)
        return jnp.einsum("bshd,hde->bse", mixed, wo)

    arguments = (
        draw.normal(4, 16, 32),
        draw.weight(32, 8, 8),
        draw.weight(32, 2, 8),
        draw.weight(32, 2, 8),
        draw.weight(8, 8, 32, fan=64),
    )
    specs = (P("x"), P(None, "y"), P(), P(), P("y"))
    return Case(apply, arguments, specs, P("x"))


@program(mesh=(4, 2), tolerance=1e-4)
def attention_linear(pin: Pin) -> Case:
    """Linear attention with cumulative sums over the sequence; batch over x, heads over y."""
    draw = Draw(23)

    def apply(q: Any, k: Any, v: Any) -> Any:
        q, k = jax.nn.elu(q) + 1, jax.nn.elu(k) + 1
        state = jnp.cumsum(jnp.einsum("bshd,bshe->bshde", k, v), axis=1)
        norm = jnp.cumsum(k, axis=1)
        return jnp.einsum("bshd,bshde->bshe", q, state) / jnp.einsum("bshd,bshd->bsh", q, norm)[..., None]

    arguments = tuple(draw.normal(4, 16, 4, 8) for _ in range(3))
    return Case(apply, arguments, (P("x", None, "y"),) * 3, P("x", None, "y"))


@program(mesh=(8,), tolerance=1e-4)
def attention_windowed(pin: Pin) -> Case:
    """Each block of the sequence sees itself and the block before it; blocks over all devices."""
    draw = Draw(24)

    def apply(q: Any, k: Any, v: Any) -> Any:
        def before(x: Any) -> Any:
            return jnp.concatenate([jnp.pad(x[:-1], ((1, 0), (0, 0), (0, 0))), x], axis=1)

        scores = jnp.einsum("nqd,nkd->nqk", q, before(k)) / 4
        return jnp.einsum("nqk,nkd->nqd", jax.nn.softmax(scores), before(v))

    def oracle(q: Any, k: Any, v: Any) -> Any:
        def before(x: Any) -> Any:
            return np.concatenate([np.concatenate([np.zeros_like(x[:1]), x[:-1]]), x], axis=1)

        return np.einsum("nqk,nkd->nqd", softmax(np.einsum("nqd,nkd->nqk", q, before(k)) / 4), before(v))

    arguments = tuple(draw.normal(16, 8, 16) for _ in range(3))
    return Case(apply, arguments, (P("x"),) * 3, P("x"), oracle)


@program(mesh=(4, 2), tolerance=1e-4)
def norms(pin: Pin) -> Case:
    """Gradients through layer, RMS and group norm of one array whose normalised dimension is split over y."""
    draw = Draw(25)

    def layer(x: Any) -> Any:
        return (x - x.mean(-1, keepdims=True)) / jnp.sqrt(x.var(-1, keepdims=True) + 1e-5)

    def rms(x: Any) -> Any:
        return x / jnp.sqrt(jnp.mean(x * x, -1, keepdims=True) + 1e-5)

    def group(x: Any) -> Any:
        g = x.reshape(*x.shape[:-1], 4, -1)
        return layer(g).reshape(x.shape)

    def value(x: Any, w: Any) -> Any:
        return jnp.sum(layer(rms(group(x) * w)) ** 3)

    return Case(
        jax.grad(value, (0, 1)), (draw.normal(16, 64), draw.normal(64)), (P("x", "y"), P("y")), (P("x", "y"), P("y"))
    )
