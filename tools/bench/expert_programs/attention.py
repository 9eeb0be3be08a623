"""Attention of long sequences, split along the sequence: Ulysses, ring attention, gathered keys and values."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
from jax.sharding import AbstractMesh, AxisType

from tools.bench.expert_programs.form import (
    BF16,
    Annotated,
    Axes,
    Constrain,
    Formula,
    JaxForm,
    P,
    array,
    exchanged,
    gathered,
)
from tools.bench.expert_programs.layers import attend, causal, mean_square


@dataclass(frozen=True)
class Ulysses(JaxForm):
    """Sequences outside of attention, heads inside. ``train``: gradients of queries, keys and values too."""

    source = "Jacobs et al., DeepSpeed Ulysses, arXiv:2309.14509, section 3.2: an all_to_all of q, k, v and the output"
    devices: int = 8
    length: int = 32768
    heads: int = 32
    head: int = 128
    train: bool = False

    @property
    def axes(self) -> Axes:
        return (("sequence", self.devices),)

    def program(self, constrain: Constrain) -> Annotated:
        def forward(q: Any, k: Any, v: Any) -> Any:
            q, k, v = (constrain(one, None, None, "sequence", None) for one in (q, k, v))
            mixed = attend(q, k, v, causal(self.length, self.length))
            mixed = constrain(mixed, None, None, "sequence", None)
            return constrain(mixed, None, "sequence", None, None)

        def gradients(q: Any, k: Any, v: Any) -> Any:
            return jax.grad(lambda *given: mean_square(forward(*given)), argnums=(0, 1, 2))(q, k, v)

        one, split = array(1, self.length, self.heads, self.head), P(None, "sequence", None, None)
        function, results = (gradients, (split,) * 3) if self.train else (forward, split)
        return Annotated(function, (one,) * 3, (split,) * 3, results)

    def formula(self) -> Formula:
        """Backward the gradients of the four go back."""
        tile = BF16 * self.length * self.heads * self.head / self.devices
        times = 8 if self.train else 4
        return Formula(times * exchanged(tile, self.devices), times)


@dataclass(frozen=True)
class GatheredKeys(JaxForm):
    """Context parallelism: queries stay, keys and values of few heads are gathered."""

    source = "The Llama 3 Herd of Models, arXiv:2407.21783, section 3.3.2: keys and values are all-gathered"
    devices: int = 16
    length: int = 131072
    heads: int = 16
    kv: int = 1  # 128 and 8 heads under 8-way tensor parallelism
    head: int = 128

    @property
    def axes(self) -> Axes:
        return (("context", self.devices),)

    def program(self, constrain: Constrain) -> Annotated:
        def forward(q: Any, k: Any, v: Any) -> Any:
            k, v = (constrain(one, None, None, None, None) for one in (k, v))
            mixed = attend(q, k, v, causal(self.length, self.length))
            return constrain(mixed, None, "context", None, None)

        split = P(None, "context", None, None)
        q, k = (array(1, self.length, heads, self.head) for heads in (self.heads, self.kv))
        return Annotated(forward, (q, k, k), (split,) * 3, split)

    def formula(self) -> Formula:
        whole = BF16 * self.length * self.kv * self.head
        return Formula(2 * gathered(whole, self.devices), 2)


@dataclass(frozen=True)
class Ring(JaxForm):
    """Keys and values go round a ring of devices, in a loop of a shard_map; softmax is summed up block by block."""

    source = "Liu et al., Ring Attention, arXiv:2310.01889: each block of keys and values is sent to the next device"
    devices: int = 8
    length: int = 32768
    heads: int = 32
    head: int = 128

    @property
    def axes(self) -> Axes:
        return (("ring", self.devices),)

    def program(self, constrain: Constrain) -> Annotated:
        n, split = self.devices, P(None, "ring", None, None)
        mesh = AbstractMesh((n,), ("ring",), axis_types=(AxisType.Auto,))
        following = [(i, (i + 1) % n) for i in range(n)]

        def block(q: Any, k: Any, v: Any, state: Any) -> Any:
            top, total, mixed = state
            scores = jnp.einsum("bshd,bthd->bhst", q, k).astype(jnp.float32) * self.head**-0.5
            high = jnp.maximum(top, scores.max(-1))
            weights, kept = jnp.exp(scores - high[..., None]), jnp.exp(top - high)
            more = jnp.einsum("bhst,bthd->bhsd", weights.astype(q.dtype), v).astype(jnp.float32)
            return high, total * kept + weights.sum(-1), mixed * kept[..., None] + more

        def local(q: Any, k: Any, v: Any) -> Any:
            def turn(state: Any, _: Any) -> Any:
                k, v, *sums = state
                k, v = (jax.lax.ppermute(one, "ring", following) for one in (k, v))
                return (k, v, *block(q, k, v, sums)), None

            batch, length, heads, head = q.shape
            nothing = jnp.zeros((batch, heads, length), jnp.float32)
            first = block(q, k, v, (nothing - 1e9, nothing, jnp.zeros((batch, heads, length, head), jnp.float32)))
            (_, _, _, total, mixed), _ = jax.lax.scan(turn, (k, v, *first), None, length=n - 1)
            return jnp.swapaxes(mixed / total[..., None], 1, 2).astype(q.dtype)

        mapped = jax.shard_map(local, mesh=mesh, in_specs=(split,) * 3, out_specs=split, check_vma=False)
        one = array(1, self.length, self.heads, self.head)
        return Annotated(mapped, (one,) * 3, (split,) * 3, split)

    def formula(self) -> Formula:
        tile = BF16 * self.length * self.heads * self.head / self.devices
        return Formula(2 * (self.devices - 1) * tile, 2 * (self.devices - 1))
