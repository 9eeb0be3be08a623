"""Two towers whose outputs meet: contrastive learning over the whole batch."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp

from .layers import perceptron, sgd
from .program import DATA, DATA_MODEL, Annotations, Case, Draw, P, Pin, program


def contrastive(pin: Pin, p: Any, images: Any, texts: Any) -> Any:
    """CLIP's loss: each row of the scores should be greatest on the diagonal, and each column."""
    a, b = perceptron(pin, p["image"], images), perceptron(pin, p["text"], texts)
    a, b = (pin("embedding", x / jnp.sqrt(jnp.sum(x * x, -1, keepdims=True) + 1e-6)) for x in (a, b))
    scores = pin("scores", 10 * a @ b.T)
    right = jnp.sum(a * b, -1) * 10
    return jnp.mean(jax.nn.logsumexp(scores, axis=0) + jax.nn.logsumexp(scores, axis=1) - 2 * right) / 2


def step(pin: Pin, p: Any, images: Any, texts: Any) -> Any:
    value, gradients = jax.value_and_grad(lambda p: contrastive(pin, p, images, texts))(p)
    return value, sgd(p, pin("gradients", gradients))


def arguments(batch: int, seed: int) -> tuple[Any, ...]:
    draw = Draw(seed)
    p = {
        "image": [draw.weight(256, 512), draw.weight(512, 64)],
        "text": [draw.weight(128, 256), draw.weight(256, 64)],
    }
    return p, draw.normal(batch, 256), draw.normal(batch, 128)


@program(mesh=DATA)
def two_towers_data() -> Case:
    """A training step with only the two batches annotated: 1024 rows against 1024."""
    pins = {"hidden": P("data", None), "embedding": P("data", None), "scores": P("data", None), "gradients": P()}
    free = Annotations((None, P("data"), P("data")))
    return Case(step, arguments(1024, 70), free, Annotations((P(), P("data"), P("data")), (P(), P()), pins))


@program(mesh=DATA_MODEL)
def two_towers_fsdp_tensor() -> Case:
    """A training step; weights over data and model, batches over data."""
    split = {name: [P("data", "model"), P("model", "data")] for name in ("image", "text")}
    specs = (split, P("data"), P("data"))
    pins = {
        "hidden": P("data", "model"),
        "embedding": P("data", None),
        "scores": P("data", "model"),
        "gradients": split,
    }
    return Case(step, arguments(1024, 71), Annotations(specs), Annotations(specs, (P(), split), pins))
