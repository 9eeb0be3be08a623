"""Attention in the forms that models have: few heads of keys, a split sequence, a cache."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
from jax import lax

from .layers import Sizes, attention, layer, sgd
from .program import DATA, DATA_FSDP_MODEL, DATA_MODEL, Annotations, Case, Draw, P, Pin, program


def grouped(draw: Draw, model: int, heads: int, keys: int, width: int) -> dict[str, Any]:
    return {
        "wq": draw.weight(model, heads, width),
        "wk": draw.weight(model, keys, width),
        "wv": draw.weight(model, keys, width),
        "wo": draw.weight(heads, width, model, fan=heads * width),
    }


def loss_step(pin: Pin, p: Any, x: Any, y: Any) -> Any:
    def loss(p: Any) -> Any:
        return jnp.mean((pin("residual", x + attention(pin, p, x)) - y) ** 2)

    value, gradients = jax.value_and_grad(loss)(p)
    return value, sgd(p, pin("gradients", gradients))


@program(mesh=DATA_MODEL)
def gqa_train() -> Case:
    """A training step of grouped-query attention: 8 heads of queries, 2 of keys, over model."""
    draw = Draw(60)
    split = {"wq": P(None, "model"), "wk": P(None, "model"), "wv": P(None, "model"), "wo": P("model")}
    specs = (split, P("data"), P("data"))
    pins = {"residual": P("data", None, None), "heads": P("data", None, "model", None), "gradients": split}
    arguments = (grouped(draw, 64, 8, 2, 16), draw.normal(8, 64, 64), draw.normal(8, 64, 64))
    return Case(loss_step, arguments, Annotations(specs), Annotations(specs, (P(), split), pins))


@program(mesh=DATA_FSDP_MODEL)
def gqa_fewer_keys_than_devices() -> Case:
    """A training step on 2x2x2: 8 heads of queries over fsdp and model, whose 4 parts share 2 heads of keys."""
    draw = Draw(61)
    both = ("fsdp", "model")
    free = {"wq": P(None, both), "wk": None, "wv": None, "wo": P(both)}
    split = {"wq": P(None, both), "wk": P(None, "fsdp"), "wv": P(None, "fsdp"), "wo": P(both)}
    pins = {"residual": P("data", None, None), "heads": P("data", None, both, None)}
    arguments = (grouped(draw, 64, 8, 2, 16), draw.normal(4, 64, 64), draw.normal(4, 64, 64))
    expert = Annotations((split, P("data"), P("data")), (P(), split), pins)
    return Case(loss_step, arguments, Annotations((free, P("data"), P("data"))), expert)


@program(mesh=DATA)
def sequence_split_train() -> Case:
    """A training step of causal attention with the sequence over all devices; an expert gathers keys and values."""
    s = Sizes(batch=2, seq=256, model=64, heads=4)
    draw = Draw(62)
    p = {name: value for name, value in layer(draw, s).items() if name.startswith("w")}
    shape = (s.batch, s.seq, s.model)
    stream = P(None, "data", None)
    pins = {"residual": stream, "heads": P(None, "data", None, None), "gradients": P()}
    return Case(
        loss_step,
        (p, draw.normal(*shape), draw.normal(*shape)),
        Annotations((None, stream, stream)),
        Annotations((P(), stream, stream), (P(), P()), pins),
    )


@program(mesh=DATA_MODEL)
def decode_cache() -> Case:
    """One step of decoding: the cache is split over batch and heads, the weights are open."""
    draw = Draw(63)
    p = grouped(draw, 128, 8, 8, 16)

    def step(pin: Pin, p: Any, cache: Any, x: Any, position: Any) -> Any:
        q, k, v = (pin("heads", jnp.einsum("be,ehd->bhd", x, p[name])) for name in ("wq", "wk", "wv"))
        keys = lax.dynamic_update_slice(cache[0], k[:, None], (0, position, 0, 0))
        values = lax.dynamic_update_slice(cache[1], v[:, None], (0, position, 0, 0))
        scores = jnp.einsum("bhd,bshd->bhs", q, keys) * q.shape[-1] ** -0.5
        scores = jnp.where(jnp.arange(keys.shape[1]) <= position, scores, -1e9)
        mixed = pin("heads", jnp.einsum("bhs,bshd->bhd", jax.nn.softmax(scores), values))
        return x + jnp.einsum("bhd,hde->be", mixed, p["wo"]), (keys, values)

    held = P("data", None, "model", None)
    cache = (draw.normal(16, 128, 8, 16), draw.normal(16, 128, 8, 16))
    split = {"wq": P(None, "model"), "wk": P(None, "model"), "wv": P(None, "model"), "wo": P("model")}
    free = Annotations((None, held, P("data"), None), (None, held))
    expert = Annotations((split, held, P("data"), P()), (P("data"), held), {"heads": P("data", "model", None)})
    return Case(step, (p, cache, draw.normal(16, 128), draw.integers(100)), free, expert)
