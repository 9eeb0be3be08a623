"""A table of words that is used twice: it looks words up at the beginning and scores them at the end."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp

from .layers import cross_entropy, sgd
from .program import DATA, DATA_MODEL, Annotations, Case, Draw, P, Pin, program

WORDS, MODEL = 2048, 64


def loss(pin: Pin, p: Any, words: Any, labels: Any) -> Any:
    x = pin("residual", p["table"][words])
    x = pin("residual", x + jnp.tanh(x @ p["w"]))
    return cross_entropy(pin("logits", x @ p["table"].T), labels)


def step(pin: Pin, p: Any, words: Any, labels: Any) -> Any:
    value, gradients = jax.value_and_grad(lambda p: loss(pin, p, words, labels))(p)
    return value, sgd(p, pin("gradients", gradients))


def arguments(tokens: int, seed: int) -> tuple[Any, ...]:
    draw = Draw(seed)
    p = {"table": draw.normal(WORDS, MODEL, scale=MODEL**-0.5), "w": draw.weight(MODEL, MODEL)}
    return p, draw.integers(WORDS, tokens), draw.integers(WORDS, tokens)


@program(mesh=DATA_MODEL)
def tied_vocabulary_loss() -> Case:
    """The loss with words split over model and tokens over data; logits are never joined by an expert."""
    specs = ({"table": P("model", None), "w": None}, P("data"), P("data"))
    pins = {"residual": P("data", None), "logits": P("data", "model")}
    expert = Annotations(({"table": P("model", None), "w": P()}, P("data"), P("data")), P(), pins)
    return Case(loss, arguments(1024, 40), Annotations(specs), expert)


@program(mesh=DATA_MODEL)
def tied_vocabulary_train() -> Case:
    """A training step with the table split in both dimensions."""
    split = {"table": P("model", "data"), "w": P("data", None)}
    specs = (split, P("data"), P("data"))
    pins = {"residual": P("data", None), "logits": P("data", "model"), "gradients": split}
    return Case(step, arguments(2048, 41), Annotations(specs), Annotations(specs, (P(), split), pins))


@program(mesh=DATA)
def tied_vocabulary_fsdp() -> Case:
    """A training step with words and tokens split over the same devices."""
    split = {"table": P("data", None), "w": P("data", None)}
    specs = (split, P("data"), P("data"))
    pins = {"residual": P("data", None), "logits": P("data", None), "gradients": split}
    return Case(step, arguments(4096, 42), Annotations(specs), Annotations(specs, (P(), split), pins))
