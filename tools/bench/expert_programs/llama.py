"""Llama's layers in training: FSDP by tensor parallelism, sequence parallelism, FSDP with rematerialization."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp

from tools.bench.expert_programs.form import (
    BF16,
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
from tools.bench.expert_programs.layers import (
    LLAMA_7B,
    LLAMA_405B,
    Sizes,
    Tree,
    attend,
    causal,
    layer_weights,
    mean_square,
    rms_norm,
)

SPECS = {
    "norm1": P(),
    "q": P("fsdp", "tensor", None),
    "k": P("fsdp", "tensor", None),
    "v": P("fsdp", "tensor", None),
    "o": P("tensor", None, "fsdp"),
    "norm2": P(),
    "gate": P("fsdp", "tensor"),
    "up": P("fsdp", "tensor"),
    "down": P("tensor", "fsdp"),
}


@dataclass(frozen=True)
class FsdpTensor(JaxForm):
    """Weights over both axes, the batch over fsdp, heads and hidden units over tensor.

    ``sequence``: what lies between the layers' products is split along the sequence, too.
    """

    source = (
        "Shoeybi et al., Megatron-LM, arXiv:1909.08053, section 3: two all_reduces of the activations of a layer "
        "forward, two backward; Korthikanti et al., arXiv:2205.05198, section 4.2.2: as many bytes with sequence "
        "parallelism; Zhao et al., FSDP, arXiv:2304.11277: weights are gathered, gradients reduce-scattered"
    )
    waits = True  # gradients of one h by q, k and v, and by gate and up
    fsdp: int = 8
    tensor: int = 8
    layers: int = 2
    batch: int = 8
    length: int = 4096
    sizes: Sizes = LLAMA_7B
    sequence: bool = False

    @property
    def axes(self) -> Axes:
        return (("fsdp", self.fsdp), ("tensor", self.tensor))

    def program(self, constrain: Constrain) -> Annotated:
        stream = ("fsdp", "tensor" if self.sequence else None, None)

        def layer(x: Any, p: Tree) -> Any:
            h = rms_norm(x, p["norm1"])
            q, k, v = (constrain(jnp.einsum("bse,ehd->bshd", h, p[n]), "fsdp", None, "tensor", None) for n in "qkv")
            mixed = constrain(attend(q, k, v, causal(self.length, self.length)), "fsdp", None, "tensor", None)
            x = constrain(x + constrain(jnp.einsum("bshd,hde->bse", mixed, p["o"]), *stream), *stream)
            h = rms_norm(x, p["norm2"])
            hidden = constrain(jax.nn.silu(h @ p["gate"]) * (h @ p["up"]), "fsdp", None, "tensor")
            return constrain(x + constrain(hidden @ p["down"], *stream), *stream)

        def loss(weights: list[Tree], x: Any) -> Any:
            for p in weights:
                x = layer(x, p)
            return mean_square(x)

        weights, specs = [layer_weights(self.sizes)] * self.layers, [SPECS] * self.layers
        x = array(self.batch, self.length, self.sizes.model)
        split = P(*stream)
        return Annotated(jax.grad(loss, argnums=(0, 1)), (weights, x), (specs, split), (specs, split))

    def formula(self) -> Formula:
        """Without rematerialization weights are gathered once: the backward pass takes what the forward left."""
        weights = 2 * gathered(self.sizes.bytes / self.tensor, self.fsdp)
        activations = 4 * summed(BF16 * self.batch / self.fsdp * self.length * self.sizes.model, self.tensor)
        return Formula(self.layers * (weights + activations))


@dataclass(frozen=True)
class FsdpRemat(JaxForm):
    """Weights and the batch over one axis; each layer is computed again in the backward pass."""

    source = (
        "Zhao et al., FSDP, arXiv:2304.11277, section 3.2 (Rajbhandari et al., ZeRO, arXiv:1910.02054, section 7.2.2: "
        "1.5 times data parallelism): weights are gathered forward and backward, gradients reduce-scattered"
    )
    fsdp: int = 64
    layers: int = 2
    batch: int = 64
    length: int = 2048
    sizes: Sizes = LLAMA_7B

    @property
    def axes(self) -> Axes:
        return (("fsdp", self.fsdp),)

    def program(self, constrain: Constrain) -> Annotated:
        def layer(x: Any, p: Tree) -> Any:
            h = rms_norm(x, p["norm1"])
            q, k, v = (jnp.einsum("bse,ehd->bshd", h, p[n]) for n in "qkv")
            x = x + jnp.einsum("bshd,hde->bse", attend(q, k, v, causal(self.length, self.length)), p["o"])
            h = rms_norm(x, p["norm2"])
            return constrain(x + (jax.nn.silu(h @ p["gate"]) * (h @ p["up"])) @ p["down"], "fsdp", None, None)

        def loss(weights: list[Tree], x: Any) -> Any:
            for p in weights:
                x = jax.checkpoint(layer)(x, p)
            return mean_square(x)

        one = {name: P(*["fsdp" if axis == "fsdp" else None for axis in spec]) for name, spec in SPECS.items()}
        weights, specs = [layer_weights(self.sizes)] * self.layers, [one] * self.layers
        x = array(self.batch, self.length, self.sizes.model)
        return Annotated(jax.grad(loss), (weights, x), (specs, P("fsdp")), specs)

    def formula(self) -> Formula:
        return Formula(self.layers * 3 * gathered(self.sizes.bytes, self.fsdp))


FSDP_405B = FsdpRemat(fsdp=4096, layers=1, batch=4096, length=1024, sizes=LLAMA_405B)
