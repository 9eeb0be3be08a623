"""Layers under one scan, their weights stacked, with and without rematerialization."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from .fsdp import LAYER_ROWS, layer_2d
from .layers import Sizes, block, layer, sgd
from .megatron import LAYER as LAYER_MEGATRON
from .program import DATA, DATA_FSDP_MODEL, DATA_MODEL, Annotations, Axes, Case, Draw, P, Pin, program, register

SIZES = Sizes(batch=16, seq=32, model=64, layers=4)


def stacked(s: Sizes) -> Any:
    draw = Draw(50)
    layers = [layer(draw, s) for _ in range(s.layers)]
    return jax.tree.map(lambda *leaves: np.stack(leaves), *layers)


def over_layers(split: dict[str, Any]) -> dict[str, Any]:
    return {name: P(None, *spec) for name, spec in split.items()}


def scan_blocks(pin: Pin, p: Any, x: Any, wrap: Callable[[Any], Any]) -> Any:
    def body(x: Any, one: Any) -> Any:
        return block(pin, one, x), None

    return jax.lax.scan(wrap(body), x, p)[0]


def step(wrap: Callable[[Any], Any]) -> Callable[..., Any]:
    def run(pin: Pin, p: Any, x: Any, y: Any) -> Any:
        value, gradients = jax.value_and_grad(lambda p: jnp.mean((scan_blocks(pin, p, x, wrap) - y) ** 2))(p)
        return value, sgd(p, pin("gradients", gradients))

    return run


def scanned(
    name: str,
    axes: Axes,
    split: dict[str, Any],
    wrap: Callable[[Any], Any],
    pins: dict[str, Any],
    summary: str,
    batch: Any = "data",
) -> None:
    def build() -> Case:
        draw, p = Draw(51), stacked(SIZES)
        shape = (SIZES.batch, SIZES.seq, SIZES.model)
        specs = (over_layers(split), P(batch), P(batch))
        expert = Annotations(specs, (P(), specs[0]), {**pins, "gradients": specs[0]})
        return Case(step(wrap), (p, draw.normal(*shape), draw.normal(*shape)), Annotations(specs), expert)

    register(name, "scans", axes, 1e-3, summary, build)


FSDP_PINS = {"residual": P("data", None, None), "hidden": P("data", None, None), "heads": P("data", None, None, None)}
MEGATRON_PINS = {
    "residual": P("data", None, None),
    "hidden": P("data", None, "model"),
    "heads": P("data", None, "model", None),
}
scanned("scan_fsdp", DATA, LAYER_ROWS, lambda body: body, FSDP_PINS, "A training step of 4 FSDP layers in a scan")
scanned("scan_fsdp_remat", DATA, LAYER_ROWS, jax.checkpoint, FSDP_PINS, "The same with each layer rematerialized")
scanned(
    "scan_megatron_remat",
    DATA_MODEL,
    LAYER_MEGATRON,
    jax.checkpoint,
    MEGATRON_PINS,
    "A training step of 4 rematerialized Megatron layers in a scan",
)


BOTH = ("data", "fsdp")
scanned(
    "scan_fsdp_tensor_3d_remat",
    DATA_FSDP_MODEL,
    layer_2d("fsdp", "model"),
    jax.checkpoint,
    {
        "residual": P(BOTH, None, None),
        "hidden": P(BOTH, None, "model"),
        "heads": P(BOTH, None, "model", None),
    },
    "A training step of 4 rematerialized layers in a scan; weights over fsdp and model, batch over data and fsdp",
    BOTH,
)


@program(mesh=DATA)
def scan_mlp_forward() -> Case:
    """Forward of 8 square layers in a scan, rows split; each weight is smaller than the activations."""
    draw = Draw(52)

    def apply(pin: Pin, weights: Any, x: Any) -> Any:
        return jax.lax.scan(lambda h, w: (pin("hidden", jnp.tanh(h @ w)), None), x, weights)[0]

    weights = np.stack(list(draw.weights(8, 256, 256)))
    specs = (P(None, "data", None), P("data", None))
    expert = Annotations(specs, P("data", None), {"hidden": P("data", None)})
    return Case(apply, (weights, draw.normal(4096, 256)), Annotations(specs), expert)
