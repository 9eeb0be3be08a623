"""Training steps of Llama's sizes for tools/bench/suggest.py: 7B and 70B with scanned layers, and two layers unrolled.

Nothing is executed: arguments are shapes and meshes are abstract. Parameters are in bf16, both moments of Adam in f32,
and all are donated; each layer is computed again in the backward pass (``jax.checkpoint``). The batch is one sequence
of 4,096 tokens for each device.

An expert's forms: weights over all axes (ZeRO-3, "all axes"); weights over both axes and the batch over the first, with
heads and hidden units over the second ("tensor"); the same with what lies between the products split along the sequence
("sequence"), as Korthikanti et al. 2022 do.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
from jax.sharding import AbstractMesh, AxisType, NamedSharding

from tools.bench.expert_programs.form import array
from tools.bench.expert_programs.layers import (
    LLAMA_7B,
    LLAMA_70B,
    Sizes,
    Tree,
    attend,
    causal,
    layer_weights,
    rms_norm,
)
from tools.bench.underspecified_programs.program import Axes, P, named

WORDS = 32000
Spec = tuple[Any, ...]


@dataclass(frozen=True, slots=True)
class LlamaStep:
    """A step of Adam on ``layers`` layers. ``scanned``: the layers are one loop over stacked weights."""

    name: str
    sizes: Sizes
    layers: int
    meshes: tuple[Axes, ...]
    scanned: bool = True
    length: int = 4096
    batch: int = 64
    words: int = WORDS
    machine: str = "h100"
    limit: str = "80GiB"

    def free(self) -> str:
        """The module with nothing annotated, on no mesh."""
        jitted = jax.jit(self._step(lambda value, *_: value), donate_argnums=(0, 1, 2), keep_unused=True)
        return _text(jitted, self.arguments())

    def forms(self, axes: Axes) -> Iterator[tuple[str, str]]:
        """(name, module) of each form of the expert."""
        names = tuple(name for name, _ in axes)
        sizes = tuple(size for _, size in axes)
        mesh = AbstractMesh(sizes, names, axis_types=(AxisType.Auto,) * len(axes))
        first, second = names[0], names[-1]
        for name, batch, model, sequence in (
            ("all axes", names, None, None),
            ("tensor", first, second, None),
            ("sequence", first, second, second),
        ):
            stream, heads, hidden = (batch, sequence, None), (batch, None, model, None), (batch, None, model)
            places = {"stream": stream, "heads": heads, "hidden": hidden, "words": hidden}

            def constrain(value: Any, place: str, places: dict[str, Spec] = places) -> Any:
                return jax.lax.with_sharding_constraint(value, NamedSharding(mesh, P(*places[place])))

            split = self._specs(names, None) if model is None else self._specs(first, model)
            given = (split, split, split, P(batch))
            jitted = jax.jit(
                self._step(constrain),
                in_shardings=tuple([named(mesh, spec) for spec in given]),
                out_shardings=named(mesh, (P(), split, split, split)),
                donate_argnums=(0, 1, 2),
                keep_unused=True,
            )
            yield name, _text(jitted, self.arguments())

    def arguments(self) -> tuple[Any, ...]:
        """Shapes of the parameters, both moments, and the tokens."""
        layer = layer_weights(self.sizes)
        stacked = jax.tree.map(lambda one: array(self.layers, *one.shape), layer)
        table = array(self.words, self.sizes.model)
        weights = {
            "embed": table,
            "layers": stacked if self.scanned else [layer] * self.layers,
            "norm": array(self.sizes.model),
            "head": array(self.sizes.model, self.words),
        }
        moments = jax.tree.map(lambda one: array(*one.shape, dtype=jnp.float32), weights)
        return weights, moments, moments, array(self.batch, self.length + 1, dtype=jnp.int32)

    def _specs(self, weights: Any, model: Any) -> Tree:
        """Of the parameters: ``weights`` along the width of the model, ``model`` along heads, hidden units and
        words.
        """
        one: dict[str, Spec] = {
            "norm1": (None,),
            "q": (weights, model, None),
            "k": (weights, model, None),
            "v": (weights, model, None),
            "o": (model, None, weights),
            "norm2": (None,),
            "gate": (weights, model),
            "up": (weights, model),
            "down": (model, weights),
        }
        layer = {name: P(*([None] if self.scanned else []), *spec) for name, spec in one.items()}
        return {
            "embed": P(model, weights),
            "layers": layer if self.scanned else [layer] * self.layers,
            "norm": P(None),
            "head": P(weights, model),
        }

    def _step(self, constrain: Callable[[Any, str], Any]) -> Callable[..., Any]:
        def layer(x: Any, p: Tree) -> Any:
            h = rms_norm(x, p["norm1"])
            q, k, v = (constrain(jnp.einsum("bse,ehd->bshd", h, p[n]), "heads") for n in "qkv")
            mixed = constrain(attend(q, k, v, causal(self.length, self.length)), "heads")
            x = constrain(x + jnp.einsum("bshd,hde->bse", mixed, p["o"]), "stream")
            h = rms_norm(x, p["norm2"])
            hidden = constrain(jax.nn.silu(h @ p["gate"]) * (h @ p["up"]), "hidden")
            return constrain(x + hidden @ p["down"], "stream")

        again = jax.checkpoint(layer)

        def loss(p: Tree, tokens: Any) -> Any:
            x = constrain(p["embed"][tokens[:, :-1]], "stream")
            if self.scanned:
                x, _ = jax.lax.scan(lambda x, one: (again(x, one), None), x, p["layers"])
            else:
                for one in p["layers"]:
                    x = again(x, one)
            scores = constrain(rms_norm(x, p["norm"]) @ p["head"], "words").astype(jnp.float32)
            picked = jnp.take_along_axis(jax.nn.log_softmax(scores), tokens[:, 1:, None], axis=-1)
            return -jnp.mean(picked)

        def step(p: Tree, m: Tree, v: Tree, tokens: Any) -> Any:
            value, gradients = jax.value_and_grad(loss)(p, tokens)
            gradients = jax.tree.map(lambda g: g.astype(jnp.float32), gradients)
            m = jax.tree.map(lambda m, g: 0.9 * m + 0.1 * g, m, gradients)
            v = jax.tree.map(lambda v, g: 0.999 * v + 0.001 * g * g, v, gradients)
            moved = jax.tree.map(lambda p, m, v: p - (1e-2 * m / (jnp.sqrt(v) + 1e-3)).astype(p.dtype), p, m, v)
            return value, moved, m, v

        return step


def _text(jitted: Any, arguments: tuple[Any, ...]) -> str:
    text: str = jitted.trace(*arguments).lower(lowering_platforms=("cpu",)).as_text(debug_info=True)
    return text


FSDP_TENSOR: Axes = (("fsdp", 8), ("tensor", 8))
SMALL: Axes = (("fsdp", 4), ("tensor", 2))
LLAMA = (
    LlamaStep("llama_7b", LLAMA_7B, 32, (FSDP_TENSOR,)),
    LlamaStep("llama_70b", LLAMA_70B, 80, (FSDP_TENSOR,)),
    LlamaStep("llama_7b_2", LLAMA_7B, 2, (SMALL,), scanned=False, batch=8),
)
