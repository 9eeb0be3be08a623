"""The programs of tools/bench/suggest.py, without annotations and in the forms of an expert, on three meshes."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import jax
import numpy as np
from jax.sharding import AxisType, Mesh, PartitionSpec

from tools.bench.underspecified_programs import experts, fsdp, layers, recommendation, vision
from tools.bench.underspecified_programs.program import (
    DATA,
    DATA_FSDP_MODEL,
    DATA_MODEL,
    Annotations,
    Axes,
    Draw,
    P,
    Pin,
    named,
)

MESHES = (DATA, DATA_MODEL, DATA_FSDP_MODEL)
WHOLE = "whole weights"
Forms = Mapping[str, Annotations]


@dataclass(frozen=True, slots=True)
class Roles:
    """What the axes of a mesh are for: ``every``, those of the ``batch``, of ``weights`` and of the ``model``."""

    every: Any
    batch: Any
    weights: Any
    model: Any

    @classmethod
    def of(cls, axes: Axes) -> Roles:
        names = tuple(name for name, _ in axes)
        every = names if len(names) > 1 else names[0]
        if "model" not in names:
            return cls(every, every, every, None)
        batch = tuple(name for name in names if name != "model")
        return cls(every, batch if len(batch) > 1 else batch[0], batch[-1], "model")


@dataclass(frozen=True, slots=True)
class SuggestProgram:
    """``function`` takes a Pin and then ``arguments``; ``experts`` gives the forms for the roles of a mesh's axes."""

    name: str
    function: Callable[..., Any]
    arguments: Callable[[], tuple[Any, ...]]
    experts: Callable[[Roles, tuple[Any, ...]], Forms]
    meshes: tuple[Axes, ...] = MESHES

    def free(self) -> str:
        """The module with nothing annotated, on no mesh."""
        pin = Pin(Mesh(np.array(jax.devices("cpu")[:1]), ("none",)), {})
        return self._text(jax.jit(lambda *given: self.function(pin, *given), keep_unused=True))

    def forms(self, axes: Axes) -> Iterator[tuple[str, str]]:
        """(name, module) of each form of the expert."""
        sizes = tuple(size for _, size in axes)
        devices = np.array(jax.devices("cpu")[: int(np.prod(sizes))]).reshape(sizes)
        mesh = Mesh(devices, tuple(name for name, _ in axes), axis_types=(AxisType.Auto,) * len(axes))
        for name, said in self.experts(Roles.of(axes), self.arguments()).items():
            yield name, self._form(mesh, said)

    def _form(self, mesh: Mesh, said: Annotations) -> str:
        pin = Pin(mesh, said.pins)
        shardings = tuple(named(mesh, spec) for spec in said.specs)
        jitted = jax.jit(
            lambda *given: self.function(pin, *given),
            in_shardings=shardings,
            out_shardings=named(mesh, said.results),
            keep_unused=True,
        )
        return self._text(jitted)

    def _text(self, jitted: Any) -> str:
        text: str = jitted.lower(*self.arguments()).as_text(debug_info=True)
        return text


def largest(axes: Any, count: int, tree: Any) -> Any:
    """Each array over ``axes`` along its largest dimension that ``count`` divides."""

    def of(array: Any) -> PartitionSpec:
        dims = [dim for dim, size in enumerate(array.shape) if size % count == 0]
        if not dims or array.ndim < 2:
            return P()
        best = max(dims, key=lambda dim: (array.shape[dim], -dim))
        return P(*[axes if dim == best else None for dim in range(array.ndim)])

    return jax.tree.map(of, tree)


def training(pins: Callable[[Any, Any], Mapping[str, Any]], parts: int = 1) -> Callable[..., dict[str, Annotations]]:
    """Forms of a step that takes ``parts`` trees of weights and then the batch; it returns a value and these trees.

    ``pins``: by the batch's axes and the model's, of the values between.
    """

    def forms(roles: Roles, arguments: tuple[Any, ...]) -> dict[str, Annotations]:
        weights, rest = arguments[0], len(arguments) - parts
        found = {}
        for name, split in ((WHOLE, layers.same(weights, P())), ("all axes", largest(roles.every, 8, weights))):
            results = (P(), split) if parts == 1 else (P(), (split,) * parts)
            near = {**pins(roles.every, None), "gradients": split}
            found[name] = Annotations((split,) * parts + (P(roles.every),) * rest, results, near)
        return found

    return forms


# ---------------------------------------------------------------- a perceptron


def mlp_arguments() -> tuple[Any, ...]:
    draw = Draw(1)
    return list(draw.weights(3, 512, 512)), draw.normal(2048, 512), draw.integers(512, 2048)


# ---------------------------------------------------------------- transformers


def transformer_arguments(count: int) -> tuple[Any, ...]:
    sizes = layers.Sizes(layers=count, batch=16, model=128, ff=512)
    p = layers.transformer(sizes)
    return p, layers.zeros(p), layers.zeros(p), layers.tokens(sizes, 1)


def transformer_pins(batch: Any, model: Any) -> dict[str, Any]:
    return {
        "residual": P(batch, None, None),
        "heads": P(batch, None, model, None),
        "hidden": P(batch, None, model),
        "logits": P(batch, None, model),
    }


def transformer_forms(roles: Roles, arguments: tuple[Any, ...]) -> dict[str, Annotations]:
    found = training(transformer_pins, 3)(roles, arguments)
    if roles.model is not None:
        p = arguments[0]
        one = fsdp.layer_2d(roles.weights, roles.model)
        split = {"embed": P(roles.model, roles.weights), "layers": [one] * len(p["layers"]), "norm": P()}
        near = {**transformer_pins(roles.batch, roles.model), "gradients": split}
        specs = (split, split, split, P(roles.batch))
        found["weights and model"] = Annotations(specs, (P(), (split,) * 3), near)
    return found


# ---------------------------------------------------------------- experts


def moe_arguments() -> tuple[Any, ...]:
    draw = Draw(32)
    return experts.parameters(33, 64, 256), draw.normal(8, 64, 64), draw.normal(8, 64, 64)


def moe_pins(batch: Any, model: Any) -> dict[str, Any]:
    return {
        "inputs": P(None, batch, None, None),
        "hidden": P(None, batch, None, model),
        "outputs": P(None, batch, None, None),
        "tokens": P(batch, None, None),
    }


def moe_forms(roles: Roles, arguments: tuple[Any, ...]) -> dict[str, Annotations]:
    """Beside those of all programs: experts over the weights' axes, where tokens are sent to them."""
    found = training(moe_pins)(roles, arguments)
    for name, over, batch in (
        ("experts over all axes", roles.every, roles.every),
        ("experts and model", roles.weights, roles.batch),
    ):
        model = None if over == roles.every else roles.model
        split = {"gate": P(), "up": P(over, None, model), "down": P(over, model, None)}
        near = {
            "inputs": P(over, None, None, None),
            "hidden": P(over, None, None, model),
            "outputs": P(over, None, None, None),
            "tokens": P(batch, None, None),
            "gradients": split,
        }
        found[name] = Annotations((split, P(batch), P(batch)), (P(), split), near)
    return found


# ---------------------------------------------------------------- recommendation


def dlrm_pins(batch: Any, model: Any) -> dict[str, Any]:
    return {"looked": P(batch, None), "hidden": P(batch, None), "products": P(batch, None, None)}


def dlrm_forms(roles: Roles, arguments: tuple[Any, ...]) -> dict[str, Annotations]:
    """Beside those of all programs: tables by rows over all axes, perceptrons whole."""
    found = training(dlrm_pins)(roles, arguments)
    batch = (P(roles.every),) * 3
    for name, table in (("tables by rows", P(roles.every, None)), ("tables by columns", P(None, roles.every))):
        split = {"tables": table, "bottom": P(), "top": P()}
        near = {**dlrm_pins(roles.every, None), "gradients": split}
        found[name] = Annotations((split, *batch), (P(), split), near)
    return found


PROGRAMS = (
    SuggestProgram("mlp", fsdp.mlp_step, mlp_arguments, training(lambda batch, _: {"hidden": P(batch, None)})),
    SuggestProgram("transformer_2", layers.adam_step, lambda: transformer_arguments(2), transformer_forms),
    SuggestProgram("moe", experts.train, moe_arguments, moe_forms),
    SuggestProgram(
        "unet",
        vision.unet_step,
        lambda: vision.unet_arguments(16, 84),
        training(lambda batch, _: {"images": P(batch, None, None, None)}),
    ),
    SuggestProgram("dlrm", recommendation.step, lambda: recommendation.arguments(1024, 100), dlrm_forms),
    SuggestProgram(
        "transformer_24", layers.adam_step, lambda: transformer_arguments(24), transformer_forms, (DATA_MODEL,)
    ),
)
