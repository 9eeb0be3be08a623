"""Inference: a decoding step under tensor parallelism, and the layouts of Pope et al. for an MLP block."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp

from tools.bench.expert_programs.form import (
    BF16,
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
from tools.bench.expert_programs.layers import LLAMA_70B, Sizes, Tree, attend, layer_weights, rms_norm
from tools.bench.expert_programs.tensor import LAYER

POPE = "Pope et al., Efficiently Scaling Transformer Inference, arXiv:2211.05102, "


@dataclass(frozen=True)
class Decode(JaxForm):
    """One token of each sequence, the likeliest, beside caches of keys and values that are split by heads."""

    source = (
        "Shoeybi et al., Megatron-LM, arXiv:1909.08053, section 3: an all_reduce after attention, one after the MLP, "
        "and one after the lookup in the split table; each device then gives its greatest logit and where that is"
    )
    tensor: int = 8
    layers: int = 4
    batch: int = 16
    length: int = 4096
    vocabulary: int = 128256
    sizes: Sizes = LLAMA_70B

    @property
    def axes(self) -> Axes:
        return (("tensor", self.tensor),)

    def program(self, constrain: Constrain) -> Annotated:
        s, heads = self.sizes, P(None, None, "tensor", None)
        cache = array(self.batch, self.length, s.kv, s.head)

        def layer(x: Any, p: Tree, keys: Any, values: Any, place: Any) -> Any:
            h = rms_norm(x, p["norm1"])
            q, k, v = (constrain(jnp.einsum("bse,ehd->bshd", h, p[n]), None, None, "tensor", None) for n in "qkv")
            keys, values = (
                jax.lax.dynamic_update_slice_in_dim(cache, one, place, axis=1)
                for cache, one in ((keys, k), (values, v))
            )
            seen = jnp.arange(self.length)[None, :] <= place
            x = constrain(x + jnp.einsum("bshd,hde->bse", attend(q, keys, values, seen), p["o"]), None, None, None)
            h = rms_norm(x, p["norm2"])
            hidden = constrain(jax.nn.silu(h @ p["gate"]) * (h @ p["up"]), None, None, "tensor")
            return constrain(x + hidden @ p["down"], None, None, None), (keys, values)

        def step(table: Any, weights: list[Tree], caches: Any, tokens: Any, place: Any) -> Any:
            x, left = constrain(table[tokens], None, None, None), []
            for p, (keys, values) in zip(weights, caches, strict=True):
                x, pair = layer(x, p, keys, values, place)
                left.append(pair)
            logits = constrain(jnp.einsum("bse,ve->bsv", x, table), None, None, "tensor")
            return jnp.argmax(logits, -1).astype(jnp.int32), left

        table = array(self.vocabulary, s.model)
        caches = [(cache, cache)] * self.layers
        arguments = (table, [layer_weights(s)] * self.layers, caches, array(self.batch, 1, dtype=jnp.int32))
        specs = (P("tensor", None), [LAYER] * self.layers, [(heads, heads)] * self.layers, P())
        place = array(dtype=jnp.int32)
        return Annotated(step, (*arguments, place), (*specs, P()), (P(), [(heads, heads)] * self.layers))

    def formula(self) -> Formula:
        """The argmax: pairs of a bf16 and an i32, in two all_gathers."""
        sums = 2 * self.layers + 1
        activations = sums * summed(BF16 * self.batch * self.sizes.model, self.tensor)
        greatest = gathered((BF16 + F32) * self.batch * self.tensor, self.tensor)
        return Formula(activations + greatest, sums + 2)


@dataclass(frozen=True)
class _Mlp(JaxForm):
    """An MLP block of PaLM 540B on a torus x*y*z; activations arrive and leave in one layout."""

    x: int = 4
    y: int = 4
    z: int = 4
    batch: int = 512
    length: int = 1
    model: int = 18432
    hidden: int = 73728

    @property
    def axes(self) -> Axes:
        return (("x", self.x), ("y", self.y), ("z", self.z))

    @property
    def stream(self) -> float:
        """Bytes of the activations between blocks, of all devices together."""
        return BF16 * self.batch * self.length * self.model

    @property
    def wide(self) -> float:
        """Bytes of the hidden activations."""
        return BF16 * self.batch * self.length * self.hidden

    def block(self, entry: Any, up: Any, down: Any, function: Any) -> Annotated:
        """``entry``: the spec of what arrives and leaves."""
        arguments = (
            array(self.batch, self.length, self.model),
            array(self.model, self.hidden),
            array(self.hidden, self.model),
        )
        return Annotated(function, arguments, (P(*entry), P(*up), P(*down)), P(*entry))


ALL = ("x", "y", "z")


@dataclass(frozen=True)
class WeightStationary1D(_Mlp):
    """Weights split along the hidden dimension; activations are gathered, and reduce-scattered."""

    source = POPE + "section 3.2.1: 2BLE"
    x: int = 1
    y: int = 1
    z: int = 64

    def program(self, constrain: Constrain) -> Annotated:
        def function(x: Any, up: Any, down: Any) -> Any:
            h = constrain(x, None, None, None)
            h = constrain(jax.nn.gelu(h @ up), None, None, ALL)
            return constrain(h @ down, None, None, ALL)

        return self.block((None, None, ALL), (None, ALL), (ALL, None), function)

    def formula(self) -> Formula:
        return Formula(2 * gathered(self.stream, self.count(*ALL)), 2)


@dataclass(frozen=True)
class WeightStationary2D(_Mlp):
    """Weights split along both dimensions; products alternate between the two."""

    source = POPE + "section 3.2.2: 2BLE/X + 2BLF/(YZ)"

    def program(self, constrain: Constrain) -> Annotated:
        def function(x: Any, up: Any, down: Any) -> Any:
            h = constrain(x, None, None, "x")  # gathered over y and z
            h = constrain(h @ up, None, None, ("y", "z", "x"))  # reduce-scattered over x
            h = constrain(jax.nn.gelu(h), None, None, ("y", "z"))  # gathered over x
            return constrain(h @ down, None, None, ALL)  # reduce-scattered over y and z

        return self.block((None, None, ALL), ("x", ("y", "z")), (("y", "z"), "x"), function)

    def formula(self) -> Formula:
        rows, columns = self.x, self.y * self.z
        outer = gathered(self.stream / rows, columns)
        inner = gathered(self.wide / columns, rows)
        return Formula(2 * outer + 2 * inner, 4)


@dataclass(frozen=True)
class WeightGathered(_Mlp):
    """Prefill of many tokens: activations stay split by batch, and all weights are gathered."""

    source = POPE + "section 3.2.3, XYZ-weight-gathered: 2EF"
    length: int = 2048

    def program(self, constrain: Constrain) -> Annotated:
        def function(x: Any, up: Any, down: Any) -> Any:
            up, down = constrain(up, None, None), constrain(down, None, None)
            h = constrain(jax.nn.gelu(x @ up), ALL, None, None)
            return constrain(h @ down, ALL, None, None)

        return self.block((ALL, None, None), ("x", ("y", "z")), (("y", "z"), "x"), function)

    def formula(self) -> Formula:
        return Formula(2 * gathered(BF16 * self.model * self.hidden, self.count(*ALL)))
