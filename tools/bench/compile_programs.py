"""The programs whose compile time is measured, lowered by JAX for meshes of any size.

Each is a training step: loss, gradients and an update of all parameters. The batch is split over the mesh axis
``data``, the parameters over ``model`` (heads, channels or experts). An abstract mesh needs no devices, so that a
program for 4,096 devices is lowered on any machine. Sizes of tensors grow with the mesh as far as they must divide;
the number of ops does not depend on the mesh.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import AbstractMesh, AxisType, NamedSharding, PartitionSpec

HEAD, LENGTH, PIXELS = 32, 128, 32
Params = Any  # a pytree of arrays
Spec = tuple[str | None, ...]


@dataclass(frozen=True, slots=True)
class MeshSize:
    """Devices along the axes ``data`` and ``model``."""

    data: int
    model: int

    def abstract(self) -> Any:
        return AbstractMesh((self.data, self.model), ("data", "model"), axis_types=(AxisType.Auto,) * 2)

    def __str__(self) -> str:
        return f"{self.data}x{self.model}"


@dataclass(frozen=True, slots=True)
class TrainingStep:
    """``loss(parameters, x)``, the shapes of both, and the specs of the parameters (each of the same tree)."""

    loss: Callable[[Params, Any], Any]
    shapes: Any
    specs: Any
    inputs: tuple[int, ...]

    def lower(self, size: MeshSize, *, debug_info: bool = False) -> str:
        """StableHLO text with sdy shardings; with ``debug_info`` it names the lines of this file."""
        mesh = size.abstract()

        def step(parameters: Params, x: Any) -> Any:
            value, gradients = jax.value_and_grad(self.loss)(parameters, x)
            return value, jax.tree.map(lambda p, g: p - 0.1 * g, parameters, gradients)

        def is_row(node: Any) -> bool:
            return isinstance(node, tuple)

        shapes = jax.tree.map(lambda s: jax.ShapeDtypeStruct(s, jnp.float32), self.shapes, is_leaf=is_row)
        placed = jax.tree.map(lambda s: NamedSharding(mesh, PartitionSpec(*s)), self.specs, is_leaf=is_row)
        batch = NamedSharding(mesh, PartitionSpec("data"))
        jitted = jax.jit(step, in_shardings=(placed, batch), out_shardings=(None, placed))
        traced = jitted.trace(shapes, jax.ShapeDtypeStruct(self.inputs, jnp.float32))
        text: str = traced.lower(lowering_platforms=("cpu",)).as_text(debug_info=debug_info)
        return text


# ---------------------------------------------------------------- transformers


def _normalised(x: Any) -> Any:
    centred = x - x.mean(-1, keepdims=True)
    return centred / jnp.sqrt((centred * centred).mean(-1, keepdims=True) + 1e-5)


def _attention(x: Any, p: Params) -> Any:
    h = _normalised(x)
    q, k, v = (jnp.einsum("btd,dhk->bthk", h, p[name]) for name in "qkv")
    scores = jnp.einsum("bthk,bshk->bhts", q, k) / np.sqrt(HEAD)
    scores = jnp.where(jnp.tril(jnp.ones((LENGTH, LENGTH), bool)), scores, -1e9)
    mixed = jnp.einsum("bhts,bshk->bthk", jax.nn.softmax(scores, -1), v)
    return x + jnp.einsum("bthk,hkd->btd", mixed, p["o"])


def _block(x: Any, p: Params) -> Any:
    x = _attention(x, p)
    return x + jax.nn.gelu(_normalised(x) @ p["up"]) @ p["down"]


ATTENTION_SPECS: dict[str, Spec] = {
    "q": (None, "model"),
    "k": (None, "model"),
    "v": (None, "model"),
    "o": ("model",),
}
BLOCK_SPECS: dict[str, Spec] = {**ATTENTION_SPECS, "up": (None, "model"), "down": ("model",)}


def _width(size: MeshSize) -> tuple[int, int]:
    """Heads, which divide over the axis ``model``, and the width of the model."""
    heads = max(8, size.model)
    return heads, heads * HEAD


def _attention_shapes(size: MeshSize) -> dict[str, tuple[int, ...]]:
    heads, width = _width(size)
    return {**dict.fromkeys("qkv", (width, heads, HEAD)), "o": (heads, HEAD, width)}


def _block_shapes(size: MeshSize) -> dict[str, tuple[int, ...]]:
    width = _width(size)[1]
    return {**_attention_shapes(size), "up": (width, 4 * width), "down": (4 * width, width)}


def transformer(size: MeshSize, layers: int) -> TrainingStep:
    """Layers one after the other, each with its own parameters: the number of ops grows with the layers."""

    def loss(parameters: Params, x: Any) -> Any:
        for p in parameters:
            x = _block(x, p)
        return (x * x).mean()

    inputs = (2 * size.data, LENGTH, _width(size)[1])
    return TrainingStep(loss, [_block_shapes(size)] * layers, [BLOCK_SPECS] * layers, inputs)


def scanned_transformer(size: MeshSize, layers: int) -> TrainingStep:
    """Layers as one loop over stacked parameters (lax.scan), which is differentiated into two loops."""

    def loss(parameters: Params, x: Any) -> Any:
        y, _ = jax.lax.scan(lambda carry, p: (_block(carry, p), None), x, parameters)
        return (y * y).mean()

    shapes = {name: (layers, *shape) for name, shape in _block_shapes(size).items()}
    specs: dict[str, Spec] = {name: (None, *spec) for name, spec in BLOCK_SPECS.items()}
    return TrainingStep(loss, shapes, specs, (2 * size.data, LENGTH, _width(size)[1]))


# ---------------------------------------------------------------- convolutions, experts


def convolution_network(size: MeshSize, blocks: int = 8) -> TrainingStep:
    """Residual blocks of two convolutions with batch norms, every second block halves the image; then pooling."""
    channels = max(32, size.model)
    dims = jax.lax.conv_dimension_numbers((1, 1, 1, 1), (1, 1, 1, 1), ("NHWC", "HWIO", "NHWC"))

    def convolve(x: Any, kernel: Any, stride: int) -> Any:
        y = jax.lax.conv_general_dilated(x, kernel, (stride, stride), "SAME", dimension_numbers=dims)
        centred = y - y.mean((0, 1, 2))
        return centred / jnp.sqrt((centred * centred).mean((0, 1, 2)) + 1e-5)

    def loss(parameters: Params, x: Any) -> Any:
        for i, p in enumerate(parameters["blocks"]):
            stride = 2 if i % 2 and x.shape[1] > 4 else 1
            kept = jax.lax.reduce_window(
                x, -jnp.inf, jax.lax.max, (1, stride, stride, 1), (1, stride, stride, 1), "SAME"
            )
            x = kept + convolve(jax.nn.relu(convolve(x, p["first"], stride)), p["second"], 1)
        scores = jax.nn.log_softmax(x.mean((1, 2)) @ parameters["classes"])
        return -scores[:, 0].mean()

    block: dict[str, tuple[int, ...]] = dict.fromkeys(("first", "second"), (3, 3, channels, channels))
    spec: dict[str, Spec] = {"first": (None, None, None, "model"), "second": (None, None, "model")}
    shapes = {"blocks": [block] * blocks, "classes": (channels, 10)}
    specs = {"blocks": [spec] * blocks, "classes": ()}
    return TrainingStep(loss, shapes, specs, (2 * size.data, PIXELS, PIXELS, channels))


def mixture_of_experts(size: MeshSize, layers: int = 4) -> TrainingStep:
    """Attention, then two experts for each token by one-hot dispatch (GShard); experts over ``model``."""
    experts, width = max(8, size.model), _width(size)[1]
    capacity = 2 * LENGTH // experts + 2

    def experts_of(x: Any, p: Params) -> Any:
        groups, tokens, _ = x.shape
        scores = jax.nn.softmax(x @ p["gate"])
        first = jax.nn.one_hot(jnp.argmax(scores, -1), experts)
        second = jax.nn.one_hot(jnp.argmax(scores * (1 - first), -1), experts)
        chosen = jnp.stack([first, second], 2)  # group, token, choice, expert
        weights = (scores[:, :, None] * chosen).sum(-1)
        flat = chosen.transpose(0, 2, 1, 3).reshape(groups, 2 * tokens, experts)
        place = (jnp.cumsum(flat, axis=1) - flat).reshape(groups, 2, tokens, experts).transpose(0, 2, 1, 3)
        slot = jax.nn.one_hot(jnp.sum(place * chosen, -1).astype(jnp.int32), capacity)
        combine = jnp.einsum("gtk,gtke,gtkc->gtec", weights, chosen, slot)
        inputs = jnp.einsum("gtke,gtkc,gtm->egcm", chosen, slot, x)
        hidden = jax.nn.relu(jnp.einsum("egcm,emh->egch", inputs, p["up"]))
        return jnp.einsum("gtec,egch,ehm->gtm", combine, hidden, p["down"])

    def loss(parameters: Params, x: Any) -> Any:
        for p in parameters:
            x = _attention(x, p)
            x = x + experts_of(_normalised(x), p)
        return (x * x).mean()

    shapes = {
        **_attention_shapes(size),
        "gate": (width, experts),
        "up": (experts, width, 2 * width),
        "down": (experts, 2 * width, width),
    }
    specs: dict[str, Spec] = {**ATTENTION_SPECS, "gate": (), "up": ("model",), "down": ("model",)}
    return TrainingStep(loss, [shapes] * layers, [specs] * layers, (2 * size.data, LENGTH, width))


# ---------------------------------------------------------------- all of them


LAYERS = (2, 12, 24, 48, 96)
SCANNED_LAYERS = (12, 48)
PROGRAMS: dict[str, Callable[[MeshSize], TrainingStep]] = {
    **{f"transformer-{n}": (lambda size, n=n: transformer(size, n)) for n in LAYERS},  # type: ignore[misc]
    **{f"scan-{n}": (lambda size, n=n: scanned_transformer(size, n)) for n in SCANNED_LAYERS},  # type: ignore[misc]
    "convolutions": convolution_network,
    "experts": mixture_of_experts,
}
