"""One transformer in the ways that people split it: Megatron, FSDP, weights gathered in two dimensions, sequence.

Blocks are pre-norm, attention is causal; parameters of the layers are a list of dicts.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp

from .mlp import adam, zeros
from .program import Case, Draw, P, Pin, program


@dataclass(frozen=True, slots=True)
class Sizes:
    batch: int = 8
    seq: int = 16
    model: int = 32
    heads: int = 4
    ff: int = 64
    vocab: int = 64
    layers: int = 2


MEGATRON = {
    "wq": P(None, "y", None),
    "wk": P(None, "y", None),
    "wv": P(None, "y", None),
    "wo": P("y", None, None),
    "up": P(None, "y"),
    "down": P("y", None),
    "norm1": P(),
    "norm2": P(),
}
FSDP = {
    "wq": P("x", None, None),
    "wk": P("x", None, None),
    "wv": P("x", None, None),
    "wo": P(None, None, "x"),
    "up": P("x", None),
    "down": P(None, "x"),
    "norm1": P("x"),
    "norm2": P("x"),
}
GATHERED_2D = {  # each weight split both ways, as in Pope et al., "Efficiently Scaling Transformer Inference"
    "wq": P("x", "y", None),
    "wk": P("x", "y", None),
    "wv": P("x", "y", None),
    "wo": P("y", None, "x"),
    "up": P("x", "y"),
    "down": P("y", "x"),
    "norm1": P(),
    "norm2": P(),
}


def parameters(s: Sizes) -> dict[str, Any]:
    draw = Draw(5)
    width = s.model // s.heads

    def layer() -> dict[str, Any]:
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

    layers = [layer() for _ in range(s.layers)]
    return {"embed": draw.normal(s.vocab, s.model), "layers": layers, "norm": 1 + draw.normal(s.model, scale=0.1)}


def specs(layer: dict[str, Any], s: Sizes, embed: Any) -> dict[str, Any]:
    return {"embed": embed, "layers": [layer] * s.layers, "norm": P()}


def rms_norm(x: Any, scale: Any) -> Any:
    return x * jax.lax.rsqrt(jnp.mean(x * x, -1, keepdims=True) + 1e-5) * scale


def attention(p: Any, x: Any) -> Any:
    q, k, v = (jnp.einsum("bse,ehd->bhsd", x, p[name]) for name in ("wq", "wk", "wv"))
    scores = jnp.einsum("bhsd,bhtd->bhst", q, k) * q.shape[-1] ** -0.5
    seq = x.shape[1]
    causal = jnp.arange(seq)[:, None] >= jnp.arange(seq)[None, :]
    weights = jax.nn.softmax(jnp.where(causal, scores, -1e9), axis=-1)
    return jnp.einsum("bhsd,hde->bse", jnp.einsum("bhst,bhtd->bhsd", weights, v), p["wo"])


def block(p: Any, x: Any, residual: Callable[[Any], Any]) -> Any:
    x = residual(x + attention(p, rms_norm(x, p["norm1"])))
    return residual(x + jax.nn.gelu(rms_norm(x, p["norm2"]) @ p["up"]) @ p["down"])


def logits(p: Any, tokens: Any, residual: Callable[[Any], Any]) -> Any:
    x = residual(p["embed"][tokens])
    for layer in p["layers"]:
        x = block(layer, x, residual)
    return rms_norm(x, p["norm"]) @ p["embed"].T


def loss(p: Any, tokens: Any, residual: Callable[[Any], Any]) -> Any:
    scores = jax.nn.log_softmax(logits(p, tokens[:, :-1], residual))
    return -jnp.mean(jnp.take_along_axis(scores, tokens[:, 1:, None], axis=-1))


def tokens(s: Sizes, extra: int = 0) -> Any:
    return Draw(6).integers(s.vocab, s.batch, s.seq + extra)


def forward_case(s: Sizes, layer: dict[str, Any], embed: Any, token: Any, residual: Any, out: Any) -> Case:
    return Case(lambda p, t: logits(p, t, residual), (parameters(s), tokens(s)), (specs(layer, s, embed), token), out)


def train_case(s: Sizes, layer: dict[str, Any], embed: Any, token: Any, residual: Any) -> Case:
    """A step of Adam -> loss, parameters and moments, split as they came."""

    def step(p: Any, m: Any, v: Any, t: Any) -> Any:
        value, grads = jax.value_and_grad(loss)(p, t, residual)
        return value, adam(p, m, v, grads)

    p, split = parameters(s), specs(layer, s, embed)
    return Case(step, (p, zeros(p), zeros(p), tokens(s, 1)), (split, split, split, token), (P(), (split,) * 3))


@program(mesh=(2, 4), tolerance=1e-4)
def transformer_megatron(pin: Pin) -> Case:
    """Forward; batch over x, heads and hidden units over y, vocabulary over y."""
    return forward_case(Sizes(), MEGATRON, P("y", None), P("x"), lambda v: pin(v, "x", None, None), P("x", None, "y"))


@program(mesh=(2, 4), tolerance=1e-4)
def transformer_megatron_train(pin: Pin) -> Case:
    """A step of Adam, split as in Megatron-LM."""
    return train_case(Sizes(), MEGATRON, P("y", None), P("x"), lambda v: pin(v, "x", None, None))


@program(mesh=(8,), tolerance=1e-4)
def transformer_fsdp(pin: Pin) -> Case:
    """Forward; every weight and the batch over all devices."""
    return forward_case(Sizes(), FSDP, P(None, "x"), P("x"), lambda v: pin(v, "x", None, None), P("x", None, None))


@program(mesh=(8,), tolerance=1e-4)
def transformer_fsdp_train(pin: Pin) -> Case:
    """A step of Adam with every weight, moment and the batch over all devices."""
    return train_case(Sizes(layers=1), FSDP, P(None, "x"), P("x"), lambda v: pin(v, "x", None, None))


@program(mesh=(4, 2), tolerance=1e-4)
def transformer_gathered_2d(pin: Pin) -> Case:
    """Forward with weights split in two dimensions; activations by batch over x, heads and units over y."""
    return forward_case(Sizes(), GATHERED_2D, P("y", "x"), P("x"), lambda v: pin(v, "x", None, None), P("x", None, "y"))


@program(mesh=(4, 2), tolerance=1e-4)
def transformer_gathered_2d_train(pin: Pin) -> Case:
    """A step of Adam with weights split in two dimensions."""
    return train_case(Sizes(layers=1), GATHERED_2D, P("y", "x"), P("x"), lambda v: pin(v, "x", None, None))


@program(mesh=(2, 4), tolerance=1e-4)
def transformer_sequence(pin: Pin) -> Case:
    """Forward; the residual stream split over the sequence between the halves of a block (Korthikanti et al.)."""
    return forward_case(Sizes(), MEGATRON, P("y", None), P("x"), lambda v: pin(v, "x", "y", None), P("x", None, "y"))


@program(mesh=(2, 4), tolerance=1e-4)
def transformer_sequence_train(pin: Pin) -> Case:
    """A step of Adam with a residual stream split over the sequence."""
    return train_case(Sizes(layers=1), MEGATRON, P("y", None), P("x"), lambda v: pin(v, "x", "y", None))


@program(mesh=(2, 2, 2), tolerance=1e-4)
def transformer_3d_train(pin: Pin) -> Case:
    """A step of Adam on 2x2x2: data, tensor, and weights split once more over data (FSDP and tensor)."""
    layer = {
        "wq": P("x", "y", None),
        "wk": P("x", "y", None),
        "wv": P("x", "y", None),
        "wo": P("y", None, "x"),
        "up": P("x", "y"),
        "down": P("y", "x"),
        "norm1": P(),
        "norm2": P(),
    }
    return train_case(Sizes(layers=1), layer, P("y", "x"), P(("x", "z")), lambda v: pin(v, ("x", "z"), None, None))


@program(mesh=(2, 3), tolerance=1e-4)
def transformer_2x3(pin: Pin) -> Case:
    """Forward on 2x3 devices with six heads."""
    s = Sizes(batch=4, seq=12, model=48, heads=6, ff=96, vocab=60)
    return forward_case(s, MEGATRON, P("y", None), P("x"), lambda v: pin(v, "x", None, None), P("x", None, "y"))


@program(mesh=(4, 2), tolerance=1e-4)
def transformer_uneven(pin: Pin) -> Case:
    """Forward with five heads over two devices, a batch of six over four, thirteen positions, 50 words."""
    s = Sizes(batch=6, seq=13, model=30, heads=5, ff=50, vocab=50, layers=1)

    def apply(p: Any, t: Any) -> Any:
        layer = p["layers"][0]
        layer = {name: pin(value, *MEGATRON[name]) for name, value in layer.items()}
        embed = pin(p["embed"], "y", None)
        return logits({**p, "embed": embed, "layers": [layer]}, t, lambda v: pin(v, "x", None, None))

    return Case(apply, (parameters(s), tokens(s)), (P(), P()), P())


@program(mesh=(2, 4), tolerance=1e-4)
def transformer_scanned(pin: Pin) -> Case:
    """Four Megatron layers as one scan over stacked weights."""
    s = Sizes(layers=4)
    p = parameters(s)
    stacked = jax.tree.map(lambda *leaves: jnp.stack(leaves), *p["layers"])
    split = {name: P(None, *spec) for name, spec in MEGATRON.items()}

    def apply(layers: Any, x: Any) -> Any:
        def body(x: Any, layer: Any) -> Any:
            return block(layer, x, lambda v: pin(v, "x", None, None)), None

        return jax.lax.scan(body, x, layers)[0]

    x = Draw(7).normal(s.batch, s.seq, s.model)
    return Case(apply, (stacked, x), (split, P("x", None, None)), P("x", None, None))


@program(mesh=(4, 2), tolerance=1e-4)
def transformer_remat_train(pin: Pin) -> Case:
    """Gradients of one Megatron block with jax.checkpoint."""
    s = Sizes(layers=1)
    p = parameters(s)["layers"][0]
    x = Draw(7).normal(s.batch, s.seq, s.model)

    def value(p: Any, x: Any) -> Any:
        return jnp.mean(jax.checkpoint(lambda p, x: block(p, x, lambda v: pin(v, "x", None, None)))(p, x) ** 2)

    return Case(jax.value_and_grad(value), (p, x), (MEGATRON, P("x", None, None)), (P(), MEGATRON))
