"""ZeRO (Rajbhandari et al.): data parallel training whose optimizer, gradients and parameters are split in turn."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp

from .layers import adam, cross_entropy, perceptron, zeros
from .program import DATA, DATA_MODEL, Annotations, Case, Draw, P, Pin, program

SPLIT = P("data", None)
WIDTH, CLASSES, LAYERS = 512, 512, 3


def arguments(batch: int, seed: int) -> tuple[Any, ...]:
    draw = Draw(seed)
    weights = list(draw.weights(LAYERS, WIDTH, WIDTH))
    return weights, zeros(weights), zeros(weights), draw.normal(batch, WIDTH), draw.integers(CLASSES, batch)


def step(pin: Pin, p: Any, m: Any, v: Any, x: Any, labels: Any) -> Any:
    value, gradients = jax.value_and_grad(lambda p: cross_entropy(perceptron(pin, p, x), labels))(p)
    return value, adam(p, m, v, pin("gradients", gradients))


@program(mesh=DATA)
def zero1_adam() -> Case:
    """Moments split, parameters whole before and after the step."""
    specs = (P(), SPLIT, SPLIT, P("data"), P("data"))
    results = (P(), (P(), SPLIT, SPLIT))
    expert = Annotations(specs, results, {"gradients": SPLIT, "hidden": P("data", None)})
    return Case(step, arguments(1024, 10), Annotations(specs, results), expert)


@program(mesh=DATA)
def zero1_adam_small_batch() -> Case:
    """The same with fewer activations than weights: an expert gathers the batch, and each sums its own gradients."""
    specs = (P(), SPLIT, SPLIT, P("data"), P("data"))
    results = (P(), (P(), SPLIT, SPLIT))
    expert = Annotations(specs, results, {"gradients": SPLIT, "input": P(), "hidden": P()})
    return Case(step, arguments(64, 11), Annotations(specs, results), expert)


@program(mesh=DATA)
def zero2_accumulate() -> Case:
    """Gradients of four small batches are added up in a scan; the expert adds up slices."""
    p, m, v, x, labels = arguments(1024, 12)
    x, labels = x.reshape(4, 256, WIDTH), labels.reshape(4, 256)

    def accumulate(pin: Pin, p: Any, m: Any, v: Any, x: Any, labels: Any) -> Any:
        def one(total: Any, batch: Any) -> Any:
            gradients = jax.grad(lambda p: cross_entropy(perceptron(pin, p, batch[0]), batch[1]))(p)
            return pin("gradients", jax.tree.map(jnp.add, total, gradients)), None

        gradients, _ = jax.lax.scan(one, jax.tree.map(jnp.zeros_like, p), (x, labels))
        return adam(p, m, v, jax.tree.map(lambda g: g / 4, gradients))

    specs = (P(), SPLIT, SPLIT, P(None, "data"), P(None, "data"))
    results = (P(), SPLIT, SPLIT)
    expert = Annotations(specs, results, {"gradients": SPLIT, "hidden": P("data", None)})
    return Case(accumulate, (p, m, v, x, labels), Annotations(specs, results), expert)


@program(mesh=DATA)
def zero3_adam() -> Case:
    """Parameters split as well, by columns; moments are open, results are not said."""
    columns = P(None, "data")
    expert = Annotations(
        (columns, columns, columns, P("data"), P("data")),
        (P(), (columns,) * 3),
        {"gradients": columns, "hidden": P("data", None)},
    )
    free = Annotations((columns, None, None, P("data"), P("data")))
    return Case(step, arguments(1024, 13), free, expert)


@program(mesh=DATA_MODEL)
def zero1_tensor() -> Case:
    """Weights over model, moments over data too, the batch over data."""
    held = [P(None, "model"), P("model", None), P(None, "model")]
    wide = [P("data", "model"), P("model", "data"), P("data", "model")]
    specs = (held, wide, wide, P("data"), P("data"))
    results = (P(), (held, wide, wide))
    expert = Annotations(specs, results, {"gradients": wide})
    return Case(step, arguments(1024, 14), Annotations(specs, results), expert)
