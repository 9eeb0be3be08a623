"""Mixtures of experts: tokens over the devices, experts over the same ones."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
from jax import lax

from .layers import sgd
from .program import DATA, DATA_FSDP_MODEL, DATA_MODEL, Annotations, Case, Draw, P, Pin, program

EXPERTS, CAPACITY = 8, 16


def mixture(pin: Pin, p: Any, x: Any) -> Any:
    """Top-2 routing with capacity by one-hot dispatch (GShard): groups of tokens [group, token, feature]."""
    groups, tokens, _ = x.shape
    weights, index = lax.top_k(jax.nn.softmax(x @ p["gate"]), 2)
    chosen = jax.nn.one_hot(index, EXPERTS)  # group, token, choice, expert
    flat = chosen.transpose(0, 2, 1, 3).reshape(groups, 2 * tokens, EXPERTS)
    place = (jnp.cumsum(flat, axis=1) - flat).reshape(groups, 2, tokens, EXPERTS).transpose(0, 2, 1, 3)
    slot = jax.nn.one_hot(jnp.sum(place * chosen, -1).astype(jnp.int32), CAPACITY)
    dispatch = jnp.einsum("gtke,gtkc->gtec", chosen, slot)
    combine = jnp.einsum("gtk,gtke,gtkc->gtec", weights, chosen, slot)
    inputs = pin("inputs", jnp.einsum("gtec,gtm->egcm", dispatch, x))
    hidden = pin("hidden", jax.nn.relu(jnp.einsum("egcm,emh->egch", inputs, p["up"])))
    outputs = pin("outputs", jnp.einsum("egch,ehm->egcm", hidden, p["down"]))
    return pin("tokens", x + jnp.einsum("gtec,egcm->gtm", combine, outputs))


def parameters(seed: int, model: int = 64, ff: int = 128) -> dict[str, Any]:
    draw = Draw(seed)
    return {
        "gate": draw.weight(model, EXPERTS),
        "up": draw.weight(EXPERTS, model, ff, fan=model),
        "down": draw.weight(EXPERTS, ff, model, fan=ff),
    }


def train(pin: Pin, p: Any, x: Any, y: Any) -> Any:
    value, gradients = jax.value_and_grad(lambda p: jnp.mean((mixture(pin, p, x) - y) ** 2))(p)
    return value, sgd(p, gradients)


def pins(units: Any) -> dict[str, Any]:
    """Experts over data where they compute; tokens over data before and after."""
    return {
        "inputs": P("data", None, None, None),
        "hidden": P("data", None, None, units),
        "outputs": P("data", None, None, None),
        "tokens": P("data", None, None),
    }


@program(mesh=DATA)
def moe_forward() -> Case:
    """Tokens and experts over all devices; the router is open."""
    x = Draw(31).normal(16, 64, 64)
    free = Annotations(({"gate": None, "up": P("data"), "down": P("data")}, P("data")))
    split = {"gate": P(), "up": P("data"), "down": P("data")}
    expert = Annotations((split, P("data")), P("data", None, None), pins(None))
    return Case(mixture, (parameters(30), x), free, expert)


@program(mesh=DATA_MODEL, tolerance=1e-3)
def moe_train() -> Case:
    """A training step; experts over data, hidden units over model, tokens over data."""
    draw = Draw(32)
    split = {"gate": P(), "up": P("data", None, "model"), "down": P("data", "model", None)}
    specs = (split, P("data"), P("data"))
    arguments = (parameters(33), draw.normal(8, 64, 64), draw.normal(8, 64, 64))
    return Case(train, arguments, Annotations(specs), Annotations(specs, (P(), split), pins("model")))


@program(mesh=DATA_FSDP_MODEL, tolerance=1e-3)
def moe_3d_train() -> Case:
    """A training step on 2x2x2; experts over fsdp, hidden units over model, tokens over data and fsdp."""
    draw = Draw(36)
    split = {"gate": P(), "up": P("fsdp", None, "model"), "down": P("fsdp", "model", None)}
    batch = P(("data", "fsdp"))
    specs = (split, batch, batch)
    arguments = (parameters(37), draw.normal(8, 64, 64), draw.normal(8, 64, 64))
    near = {
        "inputs": P("fsdp", "data", None, None),
        "hidden": P("fsdp", "data", None, "model"),
        "outputs": P("fsdp", "data", None, None),
        "tokens": P(("data", "fsdp"), None, None),
    }
    return Case(train, arguments, Annotations(specs), Annotations(specs, (P(), split), near))


@program(mesh=DATA, tolerance=1e-3)
def moe_tokens_only() -> Case:
    """A training step with nothing annotated but the tokens: experts much smaller than tokens stay whole."""
    draw = Draw(34)
    arguments = (parameters(35, 32, 32), draw.normal(32, 64, 32), draw.normal(32, 64, 32))
    data = P(None, "data", None, None)
    near = {"inputs": data, "hidden": data, "outputs": data, "tokens": P("data", None, None)}
    expert = Annotations((P(), P("data"), P("data")), (P(), P()), near)
    return Case(train, arguments, Annotations((None, P("data"), P("data"))), expert)
