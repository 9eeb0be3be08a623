"""Fully sharded data parallel: weights and batch over one axis, and nothing said of activations."""

from __future__ import annotations

from typing import Any

import jax
import numpy as np

from .layers import Sizes, adam_step, cross_entropy, logits, perceptron, sgd, sgd_step, tokens, transformer, zeros
from .program import DATA, DATA_FSDP_MODEL, DATA_MODEL, Annotations, Axes, Case, Draw, P, Pin, program, register

ROWS, COLUMNS, BATCH = P("data", None), P(None, "data"), P("data")


# ---------------------------------------------------------------- perceptrons


def mlp_step(pin: Pin, weights: list[Any], x: Any, labels: Any) -> Any:
    value, gradients = jax.value_and_grad(lambda w: cross_entropy(perceptron(pin, w, x), labels))(weights)
    return value, sgd(weights, pin("gradients", gradients))


def mlp_case(layers: int, width: int, batch: int, split: Any, results: bool) -> Case:
    """A training step; the expert keeps activations with the batch and scatters the gradients."""
    draw = Draw(1)
    weights = list(draw.weights(layers, width, width))
    arguments = (weights, draw.normal(batch, width), draw.integers(width, batch))
    specs = (split, BATCH, BATCH)
    kept = (P(), split)
    pins = {"hidden": P("data", None), "gradients": split}
    return Case(mlp_step, arguments, Annotations(specs, kept if results else None), Annotations(specs, kept, pins))


def mlp(name: str, layers: int, width: int, batch: int, split: Any, summary: str, results: bool = False) -> None:
    register(name, "fsdp", DATA, 1e-4, summary, lambda: mlp_case(layers, width, batch, split, results))


mlp("fsdp_mlp_2_rows", 2, 512, 2048, ROWS, "A training step of 2 layers, rows of the weights split")
mlp("fsdp_mlp_3_rows", 3, 512, 4096, ROWS, "A training step of 3 layers, rows of the weights split")
mlp("fsdp_mlp_3_columns", 3, 512, 4096, COLUMNS, "A training step of 3 layers, columns of the weights split", True)
mlp("fsdp_mlp_12_columns", 12, 256, 2048, COLUMNS, "A training step of 12 layers, columns of the weights split")
mlp("fsdp_mlp_24_rows", 24, 128, 2048, ROWS, "A training step of 24 layers, rows split, results annotated", True)


@program(mesh=DATA)
def fsdp_small_batch() -> Case:
    """Forward of few rows through wide layers: activations are much smaller than weights."""
    draw = Draw(2)
    weights = [draw.weight(512, 2048), draw.weight(2048, 512)]
    arguments = (weights, draw.normal(16, 512))
    specs = (ROWS, BATCH)
    pins = {"input": P(None, "data"), "hidden": P(None, "data")}
    expert = Annotations(specs, P("data", None), pins)
    return Case(perceptron, arguments, Annotations(specs), expert)


@program(mesh=DATA)
def fsdp_bias_forward() -> Case:
    """Forward of two layers with biases that are split as well."""
    draw = Draw(3)
    p = {"w1": draw.weight(256, 1024), "b1": draw.normal(1024), "w2": draw.weight(1024, 256), "b2": draw.normal(256)}

    def apply(pin: Pin, p: Any, x: Any) -> Any:
        hidden = pin("hidden", jax.nn.gelu(x @ p["w1"] + p["b1"]))
        return hidden @ p["w2"] + p["b2"]

    split = {"w1": ROWS, "b1": P("data"), "w2": ROWS, "b2": P("data")}
    specs = (split, BATCH)
    return Case(
        apply,
        (p, draw.normal(4096, 256)),
        Annotations(specs),
        Annotations(specs, P("data", None), {"hidden": P("data", None)}),
    )


# ---------------------------------------------------------------- transformers

LAYER_ROWS = {
    "wq": P("data"),
    "wk": P("data"),
    "wv": P("data"),
    "wo": P(None, "data"),
    "up": ROWS,
    "down": ROWS,
    "norm1": P("data"),
    "norm2": P("data"),
}
LAYER_COLUMNS = {
    "wq": P(None, None, "data"),
    "wk": P(None, None, "data"),
    "wv": P(None, None, "data"),
    "wo": P(None, None, "data"),
    "up": COLUMNS,
    "down": COLUMNS,
    "norm1": P("data"),
    "norm2": P("data"),
}


def split_of(s: Sizes, layer: dict[str, Any], embed: Any, norm: Any) -> dict[str, Any]:
    return {"embed": embed, "layers": [layer] * s.layers, "norm": norm}


def transformer_case(s: Sizes, layer: dict[str, Any], embed: Any, *, results: bool, step: bool = True) -> Case:
    """The expert keeps the residual stream, heads and hidden units with the batch."""
    split = split_of(s, layer, embed, P("data"))
    specs = (split, BATCH)
    kept: Any = (P(), split) if step else P("data", None, None)
    pins: dict[str, Any] = {"residual": P("data", None, None), "hidden": P("data", None, None)}
    pins["logits"] = P("data", None, None)
    if step:
        pins["gradients"] = split
    free = Annotations(specs, kept if results else None)
    function = sgd_step if step else logits
    return Case(function, (transformer(s), tokens(s, int(step))), free, Annotations(specs, kept, pins))


@program(mesh=DATA)
def fsdp_transformer_2_rows() -> Case:
    """A training step of a 2-layer transformer behind an embedding lookup, rows split, results open."""
    return transformer_case(Sizes(), LAYER_ROWS, P("data", None), results=False)


@program(mesh=DATA)
def fsdp_transformer_2_columns() -> Case:
    """A training step of a 2-layer transformer behind an embedding lookup, columns split."""
    return transformer_case(Sizes(), LAYER_COLUMNS, P(None, "data"), results=True)


@program(mesh=DATA)
def fsdp_transformer_4_forward() -> Case:
    """Forward of a 4-layer transformer behind an embedding lookup, rows split."""
    return transformer_case(Sizes(layers=4), LAYER_ROWS, P("data", None), results=False, step=False)


@program(mesh=DATA)
def fsdp_transformer_12_forward() -> Case:
    """Forward of a 12-layer transformer behind an embedding lookup, columns split."""
    return transformer_case(Sizes(layers=12), LAYER_COLUMNS, P(None, "data"), results=False, step=False)


# ---------------------------------------------------------------- with tensor parallel


def lookup(pin: Pin, emb: Any, w1: Any, w2: Any, t: Any) -> Any:
    x = pin("residual", emb[t])
    x = pin("residual", x + pin("hidden", jax.nn.gelu(x @ w1)) @ w2)
    return pin("logits", x @ emb.T)


def lookup_arguments() -> tuple[Any, ...]:
    """4096 tokens, E=64, F=256, V=128."""
    draw = Draw(4)
    return draw.normal(128, 64), draw.weight(64, 256), draw.weight(256, 64), draw.integers(128, 4096)


LOOKUP_SPECS = (P("model", "data"), P("data", "model"), P("model", "data"), P("data"))
LOOKUP_PINS = {"residual": P("data", None), "hidden": P("data", "model"), "logits": P("data", "model")}


@program(mesh=DATA_MODEL)
def fsdp_tensor_lookup() -> Case:
    """Weights split in two dimensions: a lookup, a perceptron, and the table once more."""
    expert = Annotations(LOOKUP_SPECS, P("data", "model"), LOOKUP_PINS)
    return Case(lookup, lookup_arguments(), Annotations(LOOKUP_SPECS), expert)


@program(mesh=DATA_MODEL)
def fsdp_tensor_lookup_train() -> Case:
    """A training step of the same."""

    def step(pin: Pin, weights: Any, t: Any, labels: Any) -> Any:
        value, gradients = jax.value_and_grad(lambda w: cross_entropy(lookup(pin, w[0], w[1], w[2], t), labels))(
            weights
        )
        return value, sgd(weights, pin("gradients", gradients))

    *weights, t = lookup_arguments()
    split = LOOKUP_SPECS[:3]
    specs = (split, P("data"), P("data"))
    pins = {**LOOKUP_PINS, "gradients": split}
    arguments = (tuple(weights), t, np.roll(t, 1))
    return Case(step, arguments, Annotations(specs), Annotations(specs, (P(), split), pins))


def layer_2d(rows: str, columns: str) -> dict[str, Any]:
    return {
        "wq": P(rows, columns, None),
        "wk": P(rows, columns, None),
        "wv": P(rows, columns, None),
        "wo": P(columns, None, rows),
        "up": P(rows, columns),
        "down": P(columns, rows),
        "norm1": P(),
        "norm2": P(),
    }


def tensor_pins(batch: Any, split: Any) -> dict[str, Any]:
    return {
        "residual": P(batch, None, None),
        "heads": P(batch, None, "model", None),
        "hidden": P(batch, None, "model"),
        "logits": P(batch, None, "model"),
        "gradients": split,
    }


def tensor_transformer(name: str, axes: Axes, rows: str, batch: Any, s: Sizes, summary: str) -> None:
    """A step of Adam; the free form annotates parameters, moments and the batch."""

    def build() -> Case:
        split = split_of(s, layer_2d(rows, "model"), P("model", rows), P())
        specs = (split, split, split, P(batch))
        p = transformer(s)
        expert = Annotations(specs, (P(), (split,) * 3), tensor_pins(batch, split))
        return Case(adam_step, (p, zeros(p), zeros(p), tokens(s, 1)), Annotations(specs), expert)

    register(name, "fsdp", axes, 1e-3, summary, build)


tensor_transformer(
    "fsdp_tensor_transformer_train",
    DATA_MODEL,
    "data",
    "data",
    Sizes(layers=1),
    "A step of Adam on a transformer whose weights are split over data and model",
)
tensor_transformer(
    "fsdp_tensor_transformer_3d_train",
    DATA_FSDP_MODEL,
    "fsdp",
    ("data", "fsdp"),
    Sizes(layers=1),
    "A step of Adam; batch over data and fsdp, weights over fsdp and model",
)
