"""Programs with one annotation, or with none but on the results."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import jax
import jax.numpy as jnp

from .fsdp import mlp_step
from .layers import Sizes, logits, perceptron, sgd, tokens, transformer
from .program import DATA, DATA_MODEL, Annotations, Case, Draw, P, Pin, program


def mlp(batch: int, seed: int, sizes: tuple[int, ...]) -> tuple[Any, Any]:
    draw = Draw(seed)
    weights = [draw.weight(a, b) for a, b in pairwise(sizes)]
    return weights, draw.normal(batch, sizes[0])


@program(mesh=DATA)
def only_results_forward() -> Case:
    """Forward of three layers; only the rows of the result are split."""
    expert = Annotations((P(), P("data")), P("data", None), {"hidden": P("data", None)})
    return Case(perceptron, mlp(2048, 120, (256, 512, 512, 64)), Annotations((None, None), P("data", None)), expert)


@program(mesh=DATA_MODEL)
def only_results_train() -> Case:
    """A training step; only the new weights are annotated, in two dimensions."""
    draw = Draw(121)
    weights, x = mlp(1024, 122, (256, 1024, 256))
    split = [P("data", "model"), P("model", "data")]
    expert = Annotations(
        (split, P("data"), P("data")),
        (P(), split),
        {"hidden": P("data", "model"), "gradients": split},
    )
    return Case(
        mlp_step, (weights, x, draw.integers(256, 1024)), Annotations((None, None, None), (None, split)), expert
    )


@program(mesh=DATA)
def only_one_weight() -> Case:
    """Forward of three layers; only the columns of the second weight are split."""
    free = Annotations(([None, P(None, "data"), None], None))
    weights = [P(), P(None, "data"), P()]
    expert = Annotations((weights, P("data")), P("data", None), {"hidden": P("data", None)})
    return Case(perceptron, mlp(2048, 123, (128, 512, 512, 128)), free, expert)


@program(mesh=DATA)
def only_batch_transformer() -> Case:
    """Forward of a 2-layer transformer; only the tokens are split."""
    s = Sizes()
    pins = {
        "residual": P("data", None, None),
        "hidden": P("data", None, None),
        "heads": P("data", None, None, None),
        "logits": P("data", None, None),
    }
    expert = Annotations((P(), P("data")), P("data", None, None), pins)
    return Case(logits, (transformer(s), tokens(s)), Annotations((None, P("data"))), expert)


@program(mesh=DATA_MODEL)
def lora_train() -> Case:
    """A step for adapters of low rank: the frozen weights and the batch are annotated, the adapters are not."""
    draw = Draw(124)
    frozen = [draw.weight(256, 1024), draw.weight(1024, 256)]
    adapters = [(draw.weight(256, 8), draw.normal(8, 1024)), (draw.weight(1024, 8), draw.normal(8, 256))]

    def step(pin: Pin, frozen: Any, adapters: Any, x: Any, y: Any) -> Any:
        def loss(adapters: Any) -> Any:
            h = x
            for w, (a, b) in zip(frozen, adapters, strict=True):
                h = pin("hidden", jnp.tanh(h @ w + pin("low", h @ a) @ b)) if w is frozen[0] else h @ w + h @ a @ b
            return jnp.mean((h - y) ** 2)

        value, gradients = jax.value_and_grad(loss)(adapters)
        return value, sgd(adapters, gradients, 1e-3)

    split = [P("data", "model"), P("model", "data")]
    arguments = (frozen, adapters, draw.normal(1024, 256), draw.normal(1024, 256))
    thin = [(P(), P(None, "model")), (P("model", None), P())]
    pins = {"hidden": P("data", "model"), "low": P("data", None)}
    free = Annotations((split, None, P("data"), P("data")))
    return Case(step, arguments, free, Annotations((split, thin, P("data"), P("data")), (P(), thin), pins))


@program(mesh=DATA_MODEL)
def logistic_features() -> Case:
    """Ten steps of logistic regression; only the weights are annotated, split over features by both axes."""
    draw = Draw(125)

    def fit(pin: Pin, w: Any, x: Any, y: Any) -> Any:
        def body(_: Any, w: Any) -> Any:
            error = jax.nn.sigmoid(pin("scores", x @ w)) - y
            return w - 0.5 * pin("weights", x.T @ error) / x.shape[0]

        return jax.lax.fori_loop(0, 10, body, w)

    features = ("data", "model")
    arguments = (draw.normal(2048), draw.normal(512, 2048), (draw.normal(512) > 0).astype("float32"))
    pins = {"scores": P(), "weights": P(features)}
    expert = Annotations((P(features), P(None, features), P()), P(features), pins)
    return Case(fit, arguments, Annotations((P(features), None, None)), expert)
