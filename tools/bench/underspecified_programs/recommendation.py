"""DLRM: tables too large for one device, small perceptrons, and what they look up meets."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp

from .layers import perceptron, sgd
from .program import DATA, DATA_MODEL, Annotations, Case, Draw, P, Pin, program

ROWS, TABLES, WIDTH = 4096, 4, 32


def scores(pin: Pin, p: Any, dense: Any, sparse: Any) -> Any:
    """One row of each table and a perceptron's output: the products of all pairs go into another perceptron."""
    looked = [pin("looked", table[sparse[:, index]]) for index, table in enumerate(p["tables"])]
    features = jnp.stack([perceptron(pin, p["bottom"], dense), *looked], axis=1)
    products = pin("products", jnp.einsum("bif,bjf->bij", features, features))
    flat = products.reshape(products.shape[0], -1)
    return perceptron(pin, p["top"], flat)[:, 0]


def step(pin: Pin, p: Any, dense: Any, sparse: Any, clicked: Any) -> Any:
    def loss(p: Any) -> Any:
        logit = scores(pin, p, dense, sparse)
        return jnp.mean(jnp.logaddexp(0.0, logit) - clicked * logit)

    value, gradients = jax.value_and_grad(loss)(p)
    return value, sgd(p, pin("gradients", gradients))


def arguments(batch: int, seed: int) -> tuple[Any, ...]:
    draw = Draw(seed)
    p = {
        "tables": [draw.normal(ROWS, WIDTH, scale=0.3) for _ in range(TABLES)],
        "bottom": [draw.weight(16, 64), draw.weight(64, WIDTH)],
        "top": [draw.weight((TABLES + 1) ** 2, 64), draw.weight(64, 1)],
    }
    clicked = (draw.normal(batch) > 0).astype("float32")
    return p, draw.normal(batch, 16), draw.integers(ROWS, batch, TABLES), clicked


@program(mesh=DATA)
def dlrm_rows_train() -> Case:
    """A training step; tables by rows and the batch over all devices, perceptrons open."""
    free = {"tables": P("data", None), "bottom": None, "top": None}
    split = {"tables": P("data", None), "bottom": P(), "top": P()}
    batch = (P("data"), P("data"), P("data"))
    pins = {
        "looked": P("data", None),
        "hidden": P("data", None),
        "products": P("data", None, None),
        "gradients": split,
    }
    expert = Annotations((split, *batch), (P(), split), pins)
    return Case(step, arguments(1024, 100), Annotations((free, *batch)), expert)


@program(mesh=DATA_MODEL)
def dlrm_columns_train() -> Case:
    """A training step; tables by columns over model, the batch over data, results as they came."""
    split = {"tables": P(None, "model"), "bottom": P(), "top": P()}
    specs = (split, P("data"), P("data"), P("data"))
    pins = {"looked": P("data", "model"), "hidden": P("data", None), "products": P("data", None, None)}
    free = Annotations(specs, (None, split))
    return Case(step, arguments(1024, 101), free, Annotations(specs, (P(), split), pins))
