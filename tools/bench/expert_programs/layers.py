"""The layers that forms are made of, as public models have them: RMS norm, causal attention, gated and plain MLPs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp

from tools.bench.expert_programs.form import BF16, array

Tree = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Sizes:
    """Of one layer. ``kv``: heads of keys and values."""

    model: int
    heads: int
    kv: int
    head: int
    hidden: int

    @property
    def attention(self) -> int:
        """Elements of its weights."""
        return 2 * self.model * self.head * (self.heads + self.kv)

    @property
    def gated(self) -> int:
        """Elements of the three weights of a gated MLP."""
        return 3 * self.model * self.hidden

    @property
    def bytes(self) -> int:
        """All large weights of a layer with a gated MLP, in bf16."""
        return BF16 * (self.attention + self.gated)


LLAMA_7B = Sizes(4096, 32, 32, 128, 11008)  # Touvron et al., arXiv:2302.13971
LLAMA_70B = Sizes(8192, 64, 8, 128, 28672)  # arXiv:2407.21783, table 3
LLAMA_405B = Sizes(16384, 128, 8, 128, 53248)  # the same table


def attention_weights(s: Sizes) -> Tree:
    return {
        "norm1": array(s.model),
        "q": array(s.model, s.heads, s.head),
        "k": array(s.model, s.kv, s.head),
        "v": array(s.model, s.kv, s.head),
        "o": array(s.heads, s.head, s.model),
    }


def gated_weights(s: Sizes) -> Tree:
    return {
        "norm2": array(s.model),
        "gate": array(s.model, s.hidden),
        "up": array(s.model, s.hidden),
        "down": array(s.hidden, s.model),
    }


def layer_weights(s: Sizes) -> Tree:
    return {**attention_weights(s), **gated_weights(s)}


def rms_norm(x: Any, scale: Any) -> Any:
    wide = x.astype(jnp.float32)
    return (wide * jax.lax.rsqrt(jnp.mean(wide * wide, -1, keepdims=True) + 1e-5)).astype(x.dtype) * scale


def mean_square(x: Any) -> Any:
    """A loss that needs no labels."""
    return jnp.mean(jnp.square(x.astype(jnp.float32)))


def causal(queries: int, keys: int) -> Any:
    return jnp.arange(queries)[:, None] >= jnp.arange(keys)[None, :]


def softmax(scores: Any) -> Any:
    return jax.nn.softmax(scores.astype(jnp.float32), axis=-1).astype(scores.dtype)


def attend(q: Any, k: Any, v: Any, mask: Any) -> Any:
    """Of [batch, sequence, heads, head]; each head of keys serves as many heads of queries as there are for it."""
    batch, length, heads, head = q.shape
    kv = k.shape[2]
    if kv == heads:
        scores = jnp.where(mask, jnp.einsum("bshd,bthd->bhst", q, k) * head**-0.5, -1e9)
        return jnp.einsum("bhst,bthd->bshd", softmax(scores), v)
    q = q.reshape(batch, length, kv, heads // kv, head)
    scores = jnp.where(mask, jnp.einsum("bskgd,btkd->bkgst", q, k) * head**-0.5, -1e9)
    return jnp.einsum("bkgst,btkd->bskgd", softmax(scores), v).reshape(batch, length, heads, head)
