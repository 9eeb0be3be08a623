"""Megatron's tensor parallel, with less and less said."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp

from .fsdp import split_of, tensor_pins
from .layers import Sizes, block, layer, logits, rms_norm, sgd, sgd_step, tokens, transformer
from .program import DATA_FSDP_MODEL, DATA_MODEL, Annotations, Case, Draw, P, Pin, program

LAYER = {
    "wq": P(None, "model", None),
    "wk": P(None, "model", None),
    "wv": P(None, "model", None),
    "wo": P("model", None, None),
    "up": P(None, "model"),
    "down": P("model", None),
    "norm1": P(),
    "norm2": P(),
}


@program(mesh=DATA_MODEL)
def megatron_train() -> Case:
    """A training step of 2 layers; weights, vocabulary and batch are annotated, activations are not."""
    s = Sizes()
    split = split_of(s, LAYER, P("model", None), P())
    specs = (split, P("data"))
    expert = Annotations(specs, (P(), split), tensor_pins("data", split))
    return Case(sgd_step, (transformer(s), tokens(s, 1)), Annotations(specs), expert)


@program(mesh=DATA_MODEL)
def megatron_columns_only() -> Case:
    """Forward of 2 layers; only the first weights of each half are annotated, their counterparts are open."""
    s = Sizes()
    said = {**dict.fromkeys(LAYER), "wq": LAYER["wq"], "wk": LAYER["wk"], "wv": LAYER["wv"], "up": LAYER["up"]}
    free = ({"embed": None, "layers": [said] * s.layers, "norm": None}, P("data"))
    pins = tensor_pins("data", None)
    del pins["gradients"]
    expert = Annotations((split_of(s, LAYER, P("model", None), P()), P("data")), P("data", None, "model"), pins)
    return Case(logits, (transformer(s), tokens(s)), Annotations(free), expert)


@program(mesh=DATA_FSDP_MODEL)
def megatron_one_weight() -> Case:
    """A training step of two perceptrons with a residual on 2x2x2: one weight and the batch are annotated."""
    draw = Draw(20)
    names = ("up1", "down1", "up2", "down2")
    p = {name: draw.weight(*((128, 512) if name.startswith("up") else (512, 128))) for name in names}

    def apply(pin: Pin, p: Any, x: Any) -> Any:
        for up, down in (("up1", "down1"), ("up2", "down2")):
            x = pin("residual", x + pin("hidden", jax.nn.gelu(x @ p[up])) @ p[down])
        return x

    def step(pin: Pin, p: Any, x: Any, y: Any) -> Any:
        value, gradients = jax.value_and_grad(lambda p: jnp.mean((apply(pin, p, x) - y) ** 2))(p)
        return value, sgd(p, gradients)

    batch = P(("data", "fsdp"))
    free = Annotations(({**dict.fromkeys(names), "up1": P(None, "model")}, batch, batch))
    split = {name: P(None, "model") if name.startswith("up") else P("model", None) for name in names}
    pins = {"residual": P(("data", "fsdp"), None), "hidden": P(("data", "fsdp"), "model")}
    expert = Annotations((split, batch, batch), (P(), split), pins)
    return Case(step, (p, draw.normal(2048, 128), draw.normal(2048, 128)), free, expert)


@program(mesh=DATA_MODEL)
def megatron_sequence_train() -> Case:
    """Gradients of a block whose input and output are split over the sequence; the expert splits norms so, too."""
    s = Sizes(batch=8, layers=1)
    p = layer(Draw(21), s)
    x = Draw(22).normal(s.batch, s.seq, s.model)

    def value(pin: Pin, p: Any, x: Any) -> Any:
        def loss(p: Any, x: Any) -> Any:
            return jnp.mean(rms_norm(block(pin, p, x), p["norm1"]) ** 2)

        return jax.value_and_grad(loss, argnums=(0, 1))(p, x)

    stream = P("data", "model", None)
    specs = (LAYER, stream)
    pins = {"residual": stream, "heads": P("data", None, "model", None), "hidden": P("data", None, "model")}
    expert = Annotations(specs, (P(), (LAYER, stream)), pins)
    return Case(value, (p, x), Annotations(specs, (None, (LAYER, stream))), expert)
