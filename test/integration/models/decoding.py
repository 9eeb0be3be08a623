"""Generating text: a cache in a while loop, argmax, sampling, beams."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from .program import Case, Draw, P, Pin, program
from .transformer import MEGATRON, Sizes, parameters, rms_norm, specs

SIZES = Sizes(batch=4, seq=12, layers=1)


def step(p: Any, caches: Any, token: Any, position: Any) -> Any:
    """One token for each sequence through the model -> logits and caches [batch, seq, heads, width]."""
    x = p["embed"][token]
    kept = []
    for layer, (keys, values) in zip(p["layers"], caches, strict=True):
        h = rms_norm(x, layer["norm1"])
        q, k, v = (jnp.einsum("be,ehd->bhd", h, layer[name]) for name in ("wq", "wk", "wv"))
        keys = lax.dynamic_update_slice(keys, k[:, None], (0, position, 0, 0))
        values = lax.dynamic_update_slice(values, v[:, None], (0, position, 0, 0))
        scores = jnp.einsum("bhd,bshd->bhs", q, keys) * q.shape[-1] ** -0.5
        scores = jnp.where(jnp.arange(keys.shape[1]) <= position, scores, -1e9)
        mixed = jnp.einsum("bhs,bshd->bhd", jax.nn.softmax(scores), values)
        x = x + jnp.einsum("bhd,hde->be", mixed, layer["wo"])
        x = x + jax.nn.gelu(rms_norm(x, layer["norm2"]) @ layer["up"]) @ layer["down"]
        kept.append((keys, values))
    return rms_norm(x, p["norm"]) @ p["embed"].T, kept


def caches(s: Sizes) -> Any:
    shape = (s.batch, s.seq, s.heads, s.model // s.heads)
    return [(np.zeros(shape, np.float32), np.zeros(shape, np.float32)) for _ in range(s.layers)]


@program(mesh=(2, 4), tolerance=1e-4)
def decode_cached(pin: Pin) -> Case:
    """Greedy decoding in a while loop until the end or an end token; heads and vocabulary over y, batch over x."""
    s = SIZES

    def generate(p: Any, cache: Any, token: Any) -> Any:
        def going(carry: Any) -> Any:
            position, tokens, _ = carry
            last = lax.dynamic_index_in_dim(tokens, position, axis=1, keepdims=False)
            return (position < s.seq - 1) & jnp.any(last != 63)

        def body(carry: Any) -> Any:
            position, tokens, cache = carry
            token = lax.dynamic_index_in_dim(tokens, position, axis=1, keepdims=False)
            scores, cache = step(p, cache, token, position)
            tokens = lax.dynamic_update_slice(
                tokens, jnp.argmax(scores, -1).astype(jnp.int32)[:, None], (0, position + 1)
            )
            return position + 1, tokens, cache

        tokens = jnp.zeros((s.batch, s.seq), jnp.int32).at[:, 0].set(token)
        return lax.while_loop(going, body, (jnp.int32(0), tokens, cache))[1]

    split = [(P("x", None, "y"), P("x", None, "y"))] * s.layers
    arguments = (parameters(s), caches(s), Draw(30).integers(60, s.batch))
    return Case(generate, arguments, (specs(MEGATRON, s, P("y", None)), split, P("x")), P("x"))


@program(mesh=(8,), tolerance=1e-4)
def decode_split_cache(pin: Pin) -> Case:
    """One step of decoding with the cache split over its positions and updated at a position that is an argument."""
    s = Sizes(batch=4, seq=32, layers=1)
    draw = Draw(31)
    cache = [(draw.normal(4, 32, 4, 8), draw.normal(4, 32, 4, 8))]

    def apply(p: Any, cache: Any, token: Any, position: Any) -> Any:
        scores, cache = step(p, cache, token, position)
        return jnp.argmax(scores, -1), cache

    split = [(P(None, "x"), P(None, "x"))]
    arguments = (parameters(s), cache, draw.integers(60, 4), np.int32(21))
    return Case(apply, arguments, (P(), split, P(), P()), (P(), split))


@program(mesh=(4, 2))
def argmax_decode(pin: Pin) -> Case:
    """Arg max, arg min and the probability of the choice over a vocabulary split over y."""
    draw = Draw(32)

    def apply(scores: Any) -> Any:
        best = jnp.argmax(scores, -1)
        picked = jnp.take_along_axis(jax.nn.softmax(scores), best[:, None], axis=-1)[:, 0]
        return best, jnp.argmin(scores, -1), picked

    def oracle(scores: Any) -> Any:
        e = np.exp(scores)
        return (
            scores.argmax(-1).astype(np.int32),
            scores.argmin(-1).astype(np.int32),
            (e / e.sum(-1, keepdims=True)).max(-1),
        )

    return Case(apply, (draw.normal(16, 96),), (P("x", "y"),), (P("x"), P("x"), P("x")), oracle)


@program(mesh=(4, 2), tolerance=1e-4)
def sample_top_k(pin: Pin) -> Case:
    """Sampling from the eight best words: top_k, then gumbel noise by threefry; batch over x, vocabulary over y."""
    draw = Draw(33)

    def apply(scores: Any, key: Any) -> Any:
        best, index = lax.top_k(scores, 8)
        noise = jax.random.gumbel(jax.random.wrap_key_data(key, impl="threefry2x32"), best.shape)
        choice = jnp.argmax(best + noise, -1)
        return jnp.take_along_axis(index, choice[:, None], axis=1)[:, 0]

    return Case(apply, (draw.normal(16, 96), np.array([1, 2], np.uint32)), (P("x", "y"), P()), P("x"))


@program(mesh=(4,), tolerance=1e-4)
def beam_step(pin: Pin) -> Case:
    """One step of beam search: top_k over beams and words, and the beams' tokens put in their new order."""
    draw = Draw(34)

    def apply(tokens: Any, total: Any, scores: Any) -> Any:
        batch, beams, words = scores.shape
        value, index = lax.top_k((total[:, :, None] + scores).reshape(batch, -1), beams)
        tokens = jnp.take_along_axis(tokens, (index // words)[:, :, None], axis=1)
        return jnp.concatenate([tokens, (index % words)[:, :, None]], axis=2), value

    arguments = (draw.integers(50, 8, 4, 6), draw.normal(8, 4), draw.normal(8, 4, 50))
    return Case(apply, arguments, (P("x"), P("x"), P("x")), (P("x"), P("x")))
