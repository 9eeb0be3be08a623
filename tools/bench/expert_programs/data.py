"""Data parallelism: ZeRO 1 to 3 with Adam, and weights that are split in a slice and repeated over slices (HSDP)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp

from tools.bench.expert_programs.form import (
    F32,
    Annotated,
    Axes,
    Constrain,
    Formula,
    JaxForm,
    P,
    array,
    gathered,
    summed,
)
from tools.bench.expert_programs.layers import mean_square
from tools.bench.underspecified_programs.layers import adam, sgd

ZERO = "Rajbhandari et al., ZeRO, arXiv:1910.02054, "
SPLIT = P("data", None)
Weights = list[tuple[Any, Any]]


def perceptron(weights: Weights, x: Any, constrain: Constrain, batch: Any) -> Any:
    """Blocks of an up and a down product, with residuals."""
    for up, down in weights:
        hidden = constrain(jax.nn.gelu(x @ up), batch, None)
        x = constrain(x + hidden @ down, batch, None)
    return x


@dataclass(frozen=True)
class Zero(JaxForm):
    """A step of Adam in f32 over MLP blocks. ``stage`` splits 1 the moments, 2 the gradients, 3 the weights too.

    ``parts``: small batches, one after the other, whose gradients are added up (stage 2).
    """

    source = ZERO + "section 7: gradients are reduce-scattered and weights gathered, once each"
    stage: int = 1
    data: int = 64
    blocks: int = 2
    tokens: int = 131072
    model: int = 4096
    hidden: int = 16384
    parts: int = 1

    @property
    def axes(self) -> Axes:
        return (("data", self.data),)

    def program(self, constrain: Constrain) -> Annotated:
        def loss(weights: Weights, x: Any) -> Any:
            return mean_square(perceptron(weights, x, constrain, "data"))

        def split(tree: Any) -> Any:
            return jax.tree.map(lambda one: constrain(one, *SPLIT), tree)

        def gradients(weights: Weights, x: Any) -> Any:
            if self.parts == 1:
                return split(jax.grad(loss)(weights, x))

            def add(total: Any, part: Any) -> Any:
                return split(jax.tree.map(jnp.add, total, split(jax.grad(loss)(weights, part)))), None

            return jax.lax.scan(add, split(jax.tree.map(jnp.zeros_like, weights)), x)[0]

        def step(p: Weights, m: Weights, v: Weights, x: Any) -> Any:
            return adam(p, m, v, gradients(p, x))

        f32 = jnp.float32
        one = (array(self.model, self.hidden, dtype=f32), array(self.hidden, self.model, dtype=f32))
        weights = [one] * self.blocks
        lead = () if self.parts == 1 else (self.parts,)
        x = array(*lead, self.tokens // self.parts, self.model, dtype=f32)
        kept, moments = SPLIT if self.stage == 3 else P(), SPLIT
        specs = (kept, moments, moments, P(*[None] * len(lead), "data"))
        return Annotated(step, (weights,) * 3 + (x,), specs, (kept, moments, moments))

    def formula(self) -> Formula:
        """At stage 3 the gathered weights stay from the forward pass to the backward pass, as nothing is done again."""
        weights = F32 * 2 * self.model * self.hidden * self.blocks
        return Formula((self.parts + 1) * gathered(weights, self.data))


@dataclass(frozen=True)
class Hybrid(JaxForm):
    """HSDP: a step of SGD in f32. Weights are split over data and repeated over dcn, the batch is split over both."""

    source = "Zhao et al., FSDP, arXiv:2304.11277, section 3.2.2: across the slow links, the split gradients are summed"
    dcn: int = 2
    data: int = 16
    blocks: int = 2
    tokens: int = 65536
    model: int = 4096
    hidden: int = 16384

    @property
    def axes(self) -> Axes:
        return (("dcn", self.dcn), ("data", self.data))

    def program(self, constrain: Constrain) -> Annotated:
        batch = ("dcn", "data")

        def step(weights: Weights, x: Any) -> Any:
            return sgd(weights, jax.grad(lambda w: mean_square(perceptron(w, x, constrain, batch)))(weights))

        f32 = jnp.float32
        one = (array(self.model, self.hidden, dtype=f32), array(self.hidden, self.model, dtype=f32))
        x = array(self.tokens, self.model, dtype=f32)
        return Annotated(step, ([one] * self.blocks, x), (SPLIT, P(batch)), SPLIT)

    def formula(self) -> Formula:
        weights = F32 * 2 * self.model * self.hidden * self.blocks
        return Formula(summed(weights / self.data, self.dcn), 2 * self.blocks, axis="dcn")
