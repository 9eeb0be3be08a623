"""Tensor parallelism after Megatron-LM: an MLP block, a tied embedding, layers under data parallelism."""

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
    Form,
    Formula,
    JaxForm,
    P,
    array,
    summed,
)
from tools.bench.expert_programs.layers import mean_square
from tools.bench.underspecified_programs.layers import Sizes, language_loss, sgd
from tools.bench.underspecified_programs.program import Pin
from tools.processes import ROOT

MEGATRON = "Shoeybi et al., Megatron-LM, arXiv:1909.08053, "
LAYER = {  # of a Llama layer
    "norm1": P(),
    "q": P(None, "tensor", None),
    "k": P(None, "tensor", None),
    "v": P(None, "tensor", None),
    "o": P("tensor", None, None),
    "norm2": P(),
    "gate": P(None, "tensor"),
    "up": P(None, "tensor"),
    "down": P("tensor", None),
}


@dataclass(frozen=True)
class MegatronMlp(JaxForm):
    """An MLP block of GPT-3 175B, with the gradients of its weights and of its input."""

    source = MEGATRON + "section 3, figure 3a: an all_reduce forward (g), one backward (f)"
    tensor: int = 8
    batch: int = 4
    length: int = 2048
    model: int = 12288
    hidden: int = 49152

    @property
    def axes(self) -> Axes:
        return (("tensor", self.tensor),)

    def program(self, constrain: Constrain) -> Annotated:
        def loss(up: Any, down: Any, x: Any) -> Any:
            hidden = constrain(jax.nn.gelu(x @ up), None, None, "tensor")
            return mean_square(constrain(hidden @ down, None, None, None))

        split = (P(None, "tensor"), P("tensor", None), P())
        arguments = (
            array(self.model, self.hidden),
            array(self.hidden, self.model),
            array(self.batch, self.length, self.model),
        )
        return Annotated(jax.grad(loss, argnums=(0, 1, 2)), arguments, split, split)

    def formula(self) -> Formula:
        return Formula(2 * summed(BF16 * self.batch * self.length * self.model, self.tensor), 2)


@dataclass(frozen=True)
class TiedEmbedding(JaxForm):
    """A table of words, split over the vocabulary, in front of a model and behind: lookup, logits, cross entropy."""

    source = (
        MEGATRON + "section 3: an all_reduce after the lookup, one of the gradient that the logits give, and sums of "
        "a number a token for the loss; one gradient of the table over data parallelism"
    )
    waits = True  # the table's gradients of both places are added before they are summed over data
    data: int = 4
    tensor: int = 8
    batch: int = 16
    length: int = 2048
    model: int = 4096
    vocabulary: int = 128256

    @property
    def axes(self) -> Axes:
        return (("data", self.data), ("tensor", self.tensor))

    def program(self, constrain: Constrain) -> Annotated:
        def loss(table: Any, tokens: Any, targets: Any) -> Any:
            x = constrain(table[tokens], "data", None, None)
            x = constrain(jnp.tanh(x), "data", None, None)  # the model
            logits = constrain(jnp.einsum("bse,ve->bsv", x, table), "data", None, "tensor").astype(jnp.float32)
            hit = jax.nn.one_hot(targets, self.vocabulary, dtype=jnp.float32)
            return jnp.mean(jax.nn.logsumexp(logits, -1) - jnp.sum(logits * hit, -1))

        words, split = array(self.batch, self.length, dtype=jnp.int32), P("tensor", None)
        table = array(self.vocabulary, self.model)
        arguments, specs = (table, words, words), (split, P("data"), P("data"))
        return Annotated(jax.value_and_grad(loss), arguments, specs, (P(), split))

    def formula(self) -> Formula:
        """Of the loss: the greatest logit, the sum of exponentials and the target's logit of each token, in f32."""
        tokens = self.batch * self.length / self.data
        activations = 2 * summed(BF16 * tokens * self.model, self.tensor)
        loss = 3 * summed(F32 * tokens, self.tensor)
        table = summed(BF16 * self.vocabulary * self.model / self.tensor, self.data)
        return Formula(activations + loss + table)


GPT2 = Sizes(batch=32, seq=1024, model=1024, heads=16, ff=4096, vocab=50304, layers=4)  # of its medium size
SMALL = Sizes(batch=16, seq=128, model=256, heads=8, ff=1024, vocab=1024, layers=4)
GPT = {
    "wq": P(None, "model", None),
    "wk": P(None, "model", None),
    "wv": P(None, "model", None),
    "wo": P("model", None, None),
    "up": P(None, "model"),
    "down": P("model", None),
    "norm1": P(),
    "norm2": P(),
}


@dataclass(frozen=True)
class DataTensor(JaxForm):
    """A training step of a transformer in f32, all weights annotated and nothing between them."""

    source = (
        MEGATRON + "section 3: four all_reduces of the activations of a layer, those of the embedding and the loss, "
        "and one of all gradients over data parallelism"
    )
    waits = True  # gradients of one h by q, k and v; of the table at both of its places
    data: int = 4
    model: int = 2
    sizes: Sizes = GPT2

    @property
    def axes(self) -> Axes:
        return (("data", self.data), ("model", self.model))

    def program(self, constrain: Constrain) -> Annotated:
        s = self.sizes
        f32 = jnp.float32

        def step(p: Any, words: Any) -> Any:
            free = Pin(None, {})  # which constrains nothing
            value, gradients = jax.value_and_grad(lambda p: language_loss(free, p, words))(p)
            return value, sgd(p, gradients)

        head = (s.model, s.heads, s.model // s.heads)
        one = {
            **{name: array(*head, dtype=f32) for name in ("wq", "wk", "wv")},
            "wo": array(*head[1:], s.model, dtype=f32),
            "up": array(s.model, s.ff, dtype=f32),
            "down": array(s.ff, s.model, dtype=f32),
            **{name: array(s.model, dtype=f32) for name in ("norm1", "norm2")},
        }
        norm = array(s.model, dtype=f32)
        weights = {"embed": array(s.vocab, s.model, dtype=f32), "layers": [one] * s.layers, "norm": norm}
        specs = {"embed": P("model", None), "layers": [GPT] * s.layers, "norm": P()}
        words = array(s.batch, s.seq + 1, dtype=jnp.int32)
        return Annotated(step, (weights, words), (specs, P("data")), (P(), specs))

    def formula(self) -> Formula:
        s = self.sizes
        tokens = s.batch * s.seq / self.data
        activations = (4 * s.layers + 2) * summed(F32 * tokens * s.model, self.model)
        loss = 3 * summed(F32 * tokens, self.model)
        split = s.vocab * s.model + s.layers * (4 * s.model**2 + 2 * s.model * s.ff)
        gradients = summed(F32 * (split / self.model + (2 * s.layers + 1) * s.model), self.data)
        return Formula(activations + loss + gradients)


@dataclass(frozen=True)
class ReadmeBlock(Form):
    """The transformer block of the README, examples/transformer_block.sdy.mlir, at the sizes of that file."""

    source = MEGATRON + "section 3: an example, for which no bytes were published"
    waits = True

    @property
    def axes(self) -> Axes:
        return (("data", 2), ("model", 4))

    def text(self, platform: str = "cpu") -> str:
        return (ROOT / "examples" / "transformer_block.sdy.mlir").read_text()

    def formula(self) -> None:
        return None
