"""What several programs are made of: updates of parameters, losses, perceptrons and a transformer."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from .program import Draw, Pin


def sgd(parameters: Any, gradients: Any, rate: float = 0.1) -> Any:
    return jax.tree.map(lambda p, g: p - rate * g, parameters, gradients)


def adam(p: Any, m: Any, v: Any, g: Any, rate: float = 1e-2) -> Any:
    """The first step of Adam -> parameters and both moments."""
    m = jax.tree.map(lambda m, g: 0.9 * m + 0.1 * g, m, g)
    v = jax.tree.map(lambda v, g: 0.999 * v + 0.001 * g * g, v, g)
    p = jax.tree.map(lambda p, m, v: p - rate * (m / 0.1) / (jnp.sqrt(v / 0.001) + 1e-3), p, m, v)
    return p, m, v


def zeros(tree: Any) -> Any:
    return jax.tree.map(np.zeros_like, tree)


def same(tree: Any, spec: Any) -> Any:
    """The same tree with ``spec`` at each leaf."""
    return jax.tree.map(lambda _: spec, tree)


def cross_entropy(logits: Any, labels: Any) -> Any:
    picked = jnp.take_along_axis(jax.nn.log_softmax(logits), labels[..., None], axis=-1)
    return -jnp.mean(picked)


def rms_norm(x: Any, scale: Any) -> Any:
    return x * jax.lax.rsqrt(jnp.mean(x * x, -1, keepdims=True) + 1e-5) * scale


def perceptron(pin: Pin, weights: list[Any], x: Any) -> Any:
    """``x`` through ``weights`` without biases; "input" and "hidden" are its names."""
    x = pin("input", x)
    for w in weights[:-1]:
        x = pin("hidden", jax.nn.relu(x @ w))
    return x @ weights[-1]


# ---------------------------------------------------------------- a transformer


@dataclass(frozen=True, slots=True)
class Sizes:
    batch: int = 16
    seq: int = 64
    model: int = 64
    heads: int = 4
    ff: int = 256
    vocab: int = 256
    layers: int = 2


def layer(draw: Draw, s: Sizes) -> dict[str, Any]:
    width = s.model // s.heads
    return {
        "wq": draw.weight(s.model, s.heads, width),
        "wk": draw.weight(s.model, s.heads, width),
        "wv": draw.weight(s.model, s.heads, width),
        "wo": draw.weight(s.heads, width, s.model, fan=s.model),
        "up": draw.weight(s.model, s.ff),
        "down": draw.weight(s.ff, s.model),
        "norm1": 1 + draw.normal(s.model, scale=0.1),
        "norm2": 1 + draw.normal(s.model, scale=0.1),
    }


def transformer(s: Sizes, seed: int = 5) -> dict[str, Any]:
    """Parameters: a table of words, a list of layers, a last norm."""
    draw = Draw(seed)
    layers = [layer(draw, s) for _ in range(s.layers)]
    return {"embed": draw.normal(s.vocab, s.model), "layers": layers, "norm": 1 + draw.normal(s.model, scale=0.1)}


def tokens(s: Sizes, extra: int = 0) -> Any:
    return Draw(6).integers(s.vocab, s.batch, s.seq + extra)


def attention(pin: Pin, p: Any, x: Any) -> Any:
    """Causal; with fewer heads of keys than of queries, each serves several."""
    q, k, v = (jnp.einsum("bse,ehd->bshd", x, p[name]) for name in ("wq", "wk", "wv"))
    q = pin("heads", q)
    batch, seq, heads, width = q.shape
    causal = jnp.arange(seq)[:, None] >= jnp.arange(seq)[None, :]
    if k.shape[2] == heads:
        scores = jnp.einsum("bshd,bthd->bhst", q, k) * width**-0.5
        weights = jax.nn.softmax(jnp.where(causal, scores, -1e9), axis=-1)
        mixed = jnp.einsum("bhst,bthd->bshd", weights, v)
    else:
        q = q.reshape(batch, seq, k.shape[2], heads // k.shape[2], width)
        scores = jnp.einsum("bskgd,btkd->bkgst", q, k) * width**-0.5
        weights = jax.nn.softmax(jnp.where(causal, scores, -1e9), axis=-1)
        mixed = jnp.einsum("bkgst,btkd->bskgd", weights, v).reshape(batch, seq, heads, width)
    return jnp.einsum("bshd,hde->bse", pin("heads", mixed), p["wo"])


def block(pin: Pin, p: Any, x: Any) -> Any:
    """Pre-norm attention and perceptron; "residual", "heads" and "hidden" are its names."""
    x = pin("residual", x + attention(pin, p, rms_norm(x, p["norm1"])))
    hidden = pin("hidden", jax.nn.gelu(rms_norm(x, p["norm2"]) @ p["up"]))
    return pin("residual", x + hidden @ p["down"])


def logits(pin: Pin, p: Any, words: Any) -> Any:
    """Embedding lookup, blocks, and the same table at the end; also "logits" is a name."""
    x = pin("residual", p["embed"][words])
    for one in p["layers"]:
        x = block(pin, one, x)
    return pin("logits", rms_norm(x, p["norm"]) @ p["embed"].T)


def language_loss(pin: Pin, p: Any, words: Any) -> Any:
    return cross_entropy(logits(pin, p, words[:, :-1]), words[:, 1:])


def sgd_step(pin: Pin, p: Any, words: Any) -> Any:
    value, gradients = jax.value_and_grad(lambda p: language_loss(pin, p, words))(p)
    return value, sgd(p, pin("gradients", gradients))


def adam_step(pin: Pin, p: Any, m: Any, v: Any, words: Any) -> Any:
    value, gradients = jax.value_and_grad(lambda p: language_loss(pin, p, words))(p)
    return value, adam(p, m, v, pin("gradients", gradients))
