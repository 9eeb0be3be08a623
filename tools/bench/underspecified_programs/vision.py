"""Convolution networks: a residual network and a U-Net; batch, channels or rows of the images split."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
from jax import lax

from .layers import cross_entropy, sgd
from .program import DATA, DATA_MODEL, Annotations, Case, Draw, P, Pin, program

LAYOUT = ("NHWC", "HWIO", "NHWC")


def convolve(x: Any, w: Any, stride: int = 1) -> Any:
    return lax.conv_general_dilated(x, w, (stride, stride), "SAME", dimension_numbers=LAYOUT)


def filters(draw: Draw, size: int, inputs: int, outputs: int) -> Any:
    return draw.weight(size, size, inputs, outputs, fan=size * size * inputs)


# ---------------------------------------------------------------- a residual network


def resnet(pin: Pin, p: Any, x: Any) -> Any:
    x = pin("images", jax.nn.relu(convolve(x, p["stem"])))
    for first, second in p["blocks"]:
        inner = pin("images", jax.nn.relu(convolve(x, first)))
        x = pin("images", jax.nn.relu(x + convolve(inner, second)))
    return jnp.mean(x, (1, 2)) @ p["head"]


def resnet_step(pin: Pin, p: Any, x: Any, labels: Any) -> Any:
    value, gradients = jax.value_and_grad(lambda p: cross_entropy(resnet(pin, p, x), labels))(p)
    return value, sgd(p, pin("gradients", gradients))


def resnet_arguments(batch: int, seed: int) -> tuple[Any, ...]:
    draw = Draw(seed)
    blocks = [(filters(draw, 3, 32, 32), filters(draw, 3, 32, 32)) for _ in range(2)]
    p = {"stem": filters(draw, 3, 8, 32), "blocks": blocks, "head": draw.weight(32, 16)}
    return p, draw.normal(batch, 16, 16, 8), draw.integers(16, batch)


@program(mesh=DATA)
def resnet_fsdp_train() -> Case:
    """A training step; filters split over their outputs, images over the batch, by the same axis."""
    channels = P(None, None, None, "data")
    split = {"stem": channels, "blocks": channels, "head": P("data", None)}
    specs = (split, P("data"), P("data"))
    pins = {"images": P("data", None, None, None), "gradients": split}
    return Case(resnet_step, resnet_arguments(32, 80), Annotations(specs), Annotations(specs, (P(), split), pins))


@program(mesh=DATA_MODEL)
def resnet_inputs_train() -> Case:
    """A training step with filters split over their inputs by data, images over the batch by data; model is unused."""
    channels = P(None, None, "data", None)
    split = {"stem": channels, "blocks": channels, "head": P("data", None)}
    specs = (split, P("data"), P("data"))
    both = P(("data", "model"), None, None, None)
    expert = Annotations(specs, (P(), split), {"images": both, "gradients": split})
    return Case(resnet_step, resnet_arguments(32, 81), Annotations(specs), expert)


@program(mesh=DATA)
def images_by_rows() -> Case:
    """Forward with rows of the images split: neighbours need only the edges."""
    draw = Draw(82)
    p = [filters(draw, 3, 8, 16), filters(draw, 3, 16, 16), filters(draw, 3, 16, 8)]

    def apply(pin: Pin, p: Any, x: Any) -> Any:
        for w in p:
            x = pin("images", jax.nn.relu(convolve(x, w)))
        return x

    rows = P(None, "data", None, None)
    expert = Annotations((P(), rows), rows, {"images": rows})
    return Case(apply, (p, draw.normal(2, 64, 32, 8)), Annotations((None, rows)), expert)


# ---------------------------------------------------------------- a U-Net


def unet(pin: Pin, p: Any, x: Any) -> Any:
    """Two levels down and up again, with skips."""
    skips = []
    for w in p["down"]:
        x = pin("images", jax.nn.relu(convolve(x, w)))
        skips.append(x)
        x = lax.reduce_window(x, -jnp.inf, lax.max, (1, 2, 2, 1), (1, 2, 2, 1), "VALID")
    x = pin("images", jax.nn.relu(convolve(x, p["middle"])))
    for w, skip in zip(p["up"], reversed(skips), strict=True):
        x = jnp.repeat(jnp.repeat(x, 2, axis=1), 2, axis=2)
        x = pin("images", jax.nn.relu(convolve(jnp.concatenate([x, skip], axis=-1), w)))
    return convolve(x, p["last"])


def unet_arguments(batch: int, seed: int) -> tuple[Any, ...]:
    draw = Draw(seed)
    p = {
        "down": [filters(draw, 3, 4, 16), filters(draw, 3, 16, 32)],
        "middle": filters(draw, 3, 32, 32),
        "up": [filters(draw, 3, 64, 32), filters(draw, 3, 48, 16)],
        "last": filters(draw, 1, 16, 4),
    }
    return p, draw.normal(batch, 16, 16, 4), draw.normal(batch, 16, 16, 4)


def unet_step(pin: Pin, p: Any, x: Any, noise: Any) -> Any:
    value, gradients = jax.value_and_grad(lambda p: jnp.mean((unet(pin, p, x + noise) - noise) ** 2))(p)
    return value, sgd(p, pin("gradients", gradients))


@program(mesh=DATA)
def unet_batch_train() -> Case:
    """A training step with only the images annotated."""
    pins = {"images": P("data", None, None, None), "gradients": P()}
    expert = Annotations((P(), P("data"), P("data")), (P(), P()), pins)
    return Case(unet_step, unet_arguments(16, 83), Annotations((None, P("data"), P("data"))), expert)


@program(mesh=DATA_MODEL)
def unet_fsdp_train() -> Case:
    """A training step; filters split over data by their outputs, images over the batch by data."""
    channels = P(None, None, None, "data")
    split = {"down": channels, "middle": channels, "up": channels, "last": channels}
    specs = (split, P("data"), P("data"))
    pins = {"images": P(("data", "model"), None, None, None), "gradients": split}
    expert = Annotations(specs, (P(), split), pins)
    return Case(unet_step, unet_arguments(16, 84), Annotations(specs), expert)
