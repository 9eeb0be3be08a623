"""Images: ViT, a residual network with batch norm, a U-Net, and convolution in other words."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from .program import Case, Draw, P, Pin, program
from .transformer import MEGATRON, Sizes, block, parameters, rms_norm

DIMS = ("NHWC", "HWIO", "NHWC")


def conv(x: Any, w: Any, stride: int = 1, **options: Any) -> Any:
    return lax.conv_general_dilated(x, w, (stride, stride), "SAME", dimension_numbers=DIMS, **options)


def kernel(draw: Draw, size: int, inputs: int, outputs: int) -> Any:
    return draw.weight(size, size, inputs, outputs, fan=size * size * inputs)


def batch_norm(x: Any, scale: Any, bias: Any) -> Any:
    mean = x.mean((0, 1, 2))
    variance = jnp.mean(x * x, (0, 1, 2)) - mean * mean
    return (x - mean) * lax.rsqrt(variance + 1e-5) * scale + bias


@program(mesh=(4, 2), tolerance=1e-4)
def vit(pin: Pin) -> Case:
    """A vision transformer: patches, two Megatron blocks, mean over patches, a head over y."""
    s = Sizes(batch=8, model=32, heads=4, ff=64)
    draw, p = Draw(10), parameters(s)
    patch, head, place = draw.weight(4 * 4 * 3, 32), draw.weight(32, 10), draw.normal(16, 32, scale=0.1)

    def apply(layers: Any, patch: Any, place: Any, head: Any, images: Any) -> Any:
        b, h, w, c = images.shape
        cut = images.reshape(b, h // 4, 4, w // 4, 4, c).transpose(0, 1, 3, 2, 4, 5).reshape(b, -1, 16 * c)
        x = cut @ patch + place
        for layer in layers:
            x = block(layer, x, lambda v: pin(v, "x", None, None))
        return jnp.mean(rms_norm(x, jnp.ones(32)), axis=1) @ head

    arguments = (p["layers"], patch, place, head, draw.normal(8, 16, 16, 3))
    specs = ([MEGATRON] * 2, P(None, "y"), P(None, "y"), P(None, "y"), P("x"))
    return Case(apply, arguments, specs, P("x", "y"))


def residual(p: Any, x: Any) -> Any:
    y = jax.nn.relu(batch_norm(conv(x, p["w1"], p.get("stride", 1)), p["s1"], p["b1"]))
    y = batch_norm(conv(y, p["w2"]), p["s2"], p["b2"])
    return jax.nn.relu(y + x)


def residual_parameters(draw: Draw, width: int) -> Any:
    return {
        "w1": kernel(draw, 3, width, width),
        "s1": 1 + draw.normal(width, scale=0.1),
        "b1": draw.normal(width, scale=0.1),
        "w2": kernel(draw, 3, width, width),
        "s2": 1 + draw.normal(width, scale=0.1),
        "b2": draw.normal(width, scale=0.1),
    }


def resnet(p: Any, images: Any) -> Any:
    x = jax.nn.relu(conv(images, p["stem"], 2))
    x = lax.reduce_window(x, -jnp.inf, lax.max, (1, 3, 3, 1), (1, 2, 2, 1), "SAME")
    for layer in p["blocks"]:
        x = residual(layer, x)
    return x.mean((1, 2)) @ p["head"]


@program(mesh=(8,), tolerance=1e-4)
def resnet_train(pin: Pin) -> Case:
    """A step of SGD of a small ResNet with batch norm over the whole batch, data parallel."""
    draw = Draw(11)
    p = {
        "stem": kernel(draw, 3, 3, 8),
        "blocks": [residual_parameters(draw, 8) for _ in range(2)],
        "head": draw.weight(8, 10),
    }

    def loss(p: Any, images: Any, labels: Any) -> Any:
        scores = jax.nn.log_softmax(resnet(p, images))
        return -jnp.mean(jnp.sum(scores * jax.nn.one_hot(labels, 10), -1))

    def step(p: Any, images: Any, labels: Any) -> Any:
        value, grads = jax.value_and_grad(loss)(p, images, labels)
        return value, jax.tree.map(lambda p, g: p - 0.1 * g, p, grads)

    arguments = (p, draw.normal(16, 16, 16, 3), draw.integers(10, 16))
    return Case(step, arguments, (P(), P("x"), P("x")), (P(), P()))


@program(mesh=(4, 2), tolerance=1e-4)
def resnet_channels(pin: Pin) -> Case:
    """Forward; batch over x, channels over y."""
    draw = Draw(12)
    layer = residual_parameters(draw, 16)
    split = {"w1": P(None, None, None, "y"), "w2": P(None, None, "y", None), "s1": P("y"), "b1": P("y")}
    split |= {"s2": P(), "b2": P()}
    return Case(residual, (layer, draw.normal(8, 8, 8, 16)), (split, P("x")), P("x"))


@program(mesh=(4, 2), tolerance=1e-4)
def resnet_spatial(pin: Pin) -> Case:
    """Forward; images split by rows over x (halos), the batch over y."""
    draw = Draw(13)
    layer = residual_parameters(draw, 8)
    return Case(residual, (layer, draw.normal(4, 32, 16, 8)), (P(), P("y", "x")), P("y", "x"))


@program(mesh=(4, 2), tolerance=1e-4)
def unet(pin: Pin) -> Case:
    """Forward; down by strided convolution, up by transposed convolution, skips; batch over x, rows over y."""
    draw = Draw(14)
    p = {
        "in": kernel(draw, 3, 3, 8),
        "down": kernel(draw, 3, 8, 16),
        "middle": kernel(draw, 3, 16, 16),
        "up": kernel(draw, 2, 16, 8),
        "out": kernel(draw, 3, 16, 3),
    }

    def apply(p: Any, x: Any) -> Any:
        first = jax.nn.silu(conv(x, p["in"]))
        low = jax.nn.silu(conv(first, p["down"], 2))
        low = jax.nn.silu(conv(low, p["middle"]) + low)
        up = lax.conv_transpose(low, p["up"], (2, 2), "SAME", dimension_numbers=DIMS)
        return conv(jnp.concatenate([first, up], axis=-1), p["out"])

    return Case(apply, (p, draw.normal(8, 16, 16, 3)), (P(), P("x", "y")), P("x", "y"))


@program(mesh=(8,), tolerance=1e-4)
def unet_train(pin: Pin) -> Case:
    """Gradients of a U-Net, data parallel."""
    draw = Draw(15)
    p = {"in": kernel(draw, 3, 3, 8), "down": kernel(draw, 3, 8, 8), "up": kernel(draw, 2, 8, 8)}
    p["out"] = kernel(draw, 3, 16, 3)

    def loss(p: Any, x: Any) -> Any:
        first = jax.nn.silu(conv(x, p["in"]))
        low = jax.nn.silu(conv(first, p["down"], 2))
        up = lax.conv_transpose(low, p["up"], (2, 2), "SAME", dimension_numbers=DIMS)
        return jnp.mean((conv(jnp.concatenate([first, up], axis=-1), p["out"]) - x) ** 2)

    return Case(jax.value_and_grad(loss), (p, draw.normal(8, 8, 8, 3)), (P(), P("x")), (P(), P()))


@program(mesh=(8,), tolerance=1e-4)
def depthwise(pin: Pin) -> Case:
    """A depthwise separable convolution with its channels over all devices, and average pooling."""
    draw = Draw(16)

    def apply(x: Any, deep: Any, point: Any) -> Any:
        y = jax.nn.relu(conv(x, deep, feature_group_count=32))
        y = lax.reduce_window(y, 0.0, lax.add, (1, 2, 2, 1), (1, 2, 2, 1), "VALID") / 4
        return jax.nn.relu(conv(y, point))

    arguments = (draw.normal(4, 8, 8, 32), draw.weight(3, 3, 1, 32, fan=9), draw.weight(1, 1, 32, 16, fan=32))
    specs = (P(None, None, None, "x"), P(None, None, None, "x"), P(None, None, "x", None))
    return Case(apply, arguments, specs, P(None, None, None, "x"))


@program(mesh=(4, 2), tolerance=1e-4)
def im2col(pin: Pin) -> Case:
    """A convolution as slices, a concatenation and a product; batch over x, filters over y."""
    draw = Draw(17)

    def apply(x: Any, w: Any) -> Any:
        padded = jnp.pad(x, ((0, 0), (1, 1), (1, 1), (0, 0)))
        size = x.shape[1]
        columns = [padded[:, i : i + size, j : j + size, :] for i in range(3) for j in range(3)]
        return jnp.concatenate(columns, axis=-1) @ w

    def numpy_apply(x: Any, w: Any) -> Any:
        padded = np.pad(x, ((0, 0), (1, 1), (1, 1), (0, 0)))
        out = np.zeros((*x.shape[:3], w.shape[1]), np.float32)
        for k in range(9):
            i, j = divmod(k, 3)
            out += padded[:, i : i + x.shape[1], j : j + x.shape[2]] @ w[4 * k : 4 * k + 4]
        return out

    arguments = (draw.normal(8, 8, 8, 4), draw.weight(36, 16))
    return Case(apply, arguments, (P("x"), P(None, "y")), P("x", None, None, "y"), numpy_apply)


@program(mesh=(2, 3), tolerance=1e-4)
def conv_uneven(pin: Pin) -> Case:
    """Two convolutions over images whose rows and columns divide by neither axis."""
    draw = Draw(18)

    def apply(x: Any, w1: Any, w2: Any) -> Any:
        x = pin(x, None, "x", "y", None)
        y = pin(jax.nn.relu(conv(x, w1)), None, "x", "y", None)
        return conv(y, w2, 2).sum((1, 2))

    return Case(apply, (draw.normal(2, 13, 11, 3), kernel(draw, 3, 3, 8), kernel(draw, 3, 8, 4)), (P(),) * 3, P())
