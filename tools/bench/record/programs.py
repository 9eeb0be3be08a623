"""The programs of the record: layers of the sizes that a source names, each with a spec, an axis order or a collective
that the source changed.

Layers are reduced to their products, norms and sums, and a few layers stand for all: a ratio of two forms of one
program is compared, not its seconds.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import jax
import jax.numpy as jnp

from tools.bench.expert_programs.form import Annotated, Axes, Constrain, Formula, JaxForm, P, array
from tools.bench.expert_programs.layers import mean_square

Entry = str | tuple[str, ...] | None


@dataclass(frozen=True)
class Record(JaxForm):
    """A program of the record."""

    axes: Axes = (("m", 8),)
    source: ClassVar[str] = "record.toml"

    def formula(self) -> Formula | None:
        return None


@dataclass(frozen=True)
class Dense(Record):
    """A training step of layers of two products.

    ``batch``: the axes of the tokens; ``rows`` and ``columns``: of a weight's input and inner dimension; ``used``: of
    the input dimension where the layer reads it. ``microbatches`` are summed over: ``deferred`` if each device sums
    its own, which are added once.
    """

    batch: Entry = None
    rows: Entry = None
    columns: Entry = None
    used: Entry = None
    layers: int = 4
    tokens: int = 8192
    model: int = 4096
    hidden: int = 16384
    microbatches: int = 1
    deferred: bool = False

    def program(self, constrain: Constrain) -> Annotated:
        batch = None if self.deferred else self.batch
        groups = self.count(*((self.batch,) if isinstance(self.batch, str) else self.batch or ()))

        def loss(weights: Any, x: Any) -> Any:
            for up, down in weights:
                if self.used:
                    up, down = constrain(up, self.used, None), constrain(down, None, self.used)
                if self.deferred:
                    x = x + jax.nn.gelu(x @ up) @ down
                else:
                    x = constrain(x + constrain(jax.nn.gelu(x @ up), batch, self.columns) @ down, batch, None)
            return mean_square(x)

        def gradients(weights: Any, x: Any) -> Any:
            if self.deferred:
                parts = x.reshape(groups, -1, self.model)
                return jax.vmap(jax.grad(loss), in_axes=(None, 0))(weights, constrain(parts, self.batch, None, None))
            made = jax.grad(loss)(weights, x)
            return [
                (constrain(up, self.rows, self.columns), constrain(down, self.columns, self.rows)) for up, down in made
            ]

        def step(weights: Any, xs: Any) -> Any:
            first = gradients(weights, xs[0])
            if self.microbatches > 1:
                first, _ = jax.lax.scan(_summed(gradients, weights), first, xs[1:])
            return jax.tree.map(lambda each: each.sum(0), first) if self.deferred else first

        up, down = P(self.rows, self.columns), P(self.columns, self.rows)
        weights = [(array(self.model, self.hidden), array(self.hidden, self.model))] * self.layers
        xs = array(self.microbatches, self.tokens, self.model)
        specs = [(up, down)] * self.layers
        return Annotated(step, (weights, xs), (specs, P(None, self.batch, None)), specs)


def _summed(gradients: Callable[..., Any], weights: Any) -> Callable[[Any, Any], tuple[Any, None]]:
    return lambda total, x: (jax.tree.map(jnp.add, total, gradients(weights, x)), None)


@dataclass(frozen=True)
class Decode(Record):
    """Layers at one token a request, weights split over ``columns``, all reductions after attention and the MLP."""

    columns: Entry = None
    layers: int = 4
    tokens: int = 1
    model: int = 8192
    hidden: int = 22016

    def program(self, constrain: Constrain) -> Annotated:
        def run(weights: Any, x: Any) -> Any:
            for q, o, up, down in weights:
                x = constrain(x + constrain(x @ q, None, self.columns) @ o, None, None)
                x = constrain(x + constrain(jax.nn.silu(x @ up), None, self.columns) @ down, None, None)
            return x

        m, h = self.model, self.hidden
        shapes = (array(m, m), array(m, m), array(m, h * 3 // 2), array(h * 3 // 2, m))
        into, out = P(None, self.columns), P(self.columns, None)
        specs = [(into, out, into, out)] * self.layers
        return Annotated(run, ([shapes] * self.layers, array(self.tokens, m)), (specs, P()), P())


@dataclass(frozen=True)
class Latent(Record):
    """Latent attention of DeepSeek's models under data parallelism, and an MLP under tensor parallelism, at decoding.

    ``tokens_of_products``: the axes of the tokens where products are annotated; ``heads``: of the weights per head.
    """

    tokens_of_products: Entry = "m"
    heads: Entry = None
    tokens: int = 1536
    model: int = 7168

    def program(self, constrain: Constrain) -> Annotated:
        def run(x: Any, a: Any, b: Any, uk: Any, uv: Any, o: Any, up: Any, down: Any) -> Any:
            at = self.tokens_of_products
            low = constrain(x @ a, at, None)
            q = constrain(low[:, :1536] @ b, at, None).reshape(self.tokens, 128, 128)
            q = constrain(q, "m", None, None)
            latent = constrain(jnp.einsum("bnp,npl->bnl", q, uk), "m", None, None)
            latent = latent * jnp.tanh(latent)  # attention over the cache of a request, which is where its tokens are
            value = constrain(jnp.einsum("bnl,nlv->bnv", latent, uv), "m", None, None)
            x = constrain(x + constrain(value.reshape(self.tokens, -1) @ o, at, None), "m", None)
            every = constrain(x, None, None)
            return constrain(constrain(jax.nn.silu(every @ up), None, "m") @ down, "m", None)

        m, inner = self.model, 9 * 2048
        shapes = ((self.tokens, m), (m, 2112), (1536, 128 * 128), (128, 128, 512), (128, 512, 128), (128 * 128, m))
        arguments = tuple(array(*shape) for shape in (*shapes, (m, inner), (inner, m)))
        heads = P(self.heads, None, None)
        specs = (P("m", None), P(), P(), heads, heads, P(), P(None, "m"), P("m", None))
        return Annotated(run, arguments, specs, P("m", None))


@dataclass(frozen=True)
class Heads(Record):
    """Attention's projections and an MLP over many tokens; the output's weight is split by heads or within them."""

    by_heads: bool = True
    tokens: int = 8192
    model: int = 5376
    heads: int = 32
    size: int = 128

    def program(self, constrain: Constrain) -> Annotated:
        def run(x: Any, q: Any, o: Any, up: Any, down: Any) -> Any:
            value = constrain(jnp.einsum("td,dnh->tnh", x, q), None, "m", None)
            x = x + constrain(jnp.einsum("tnh,nhd->td", jnp.tanh(value), o), None, None)
            return constrain(x + constrain(jax.nn.gelu(x @ up), None, "m") @ down, None, None)

        m, n, h = self.model, self.heads, self.size
        arguments = tuple(array(*s) for s in ((self.tokens, m), (m, n, h), (n, h, m), (m, 4 * m), (4 * m, m)))
        out = P("m", None, None) if self.by_heads else P(None, "m", None)
        return Annotated(run, arguments, (P(), P(None, "m", None), out, P(None, "m"), P("m", None)), P())


@dataclass(frozen=True)
class Sampling(Record):
    """Probabilities and a draw from logits of many requests, in ``tokens`` over an axis or everywhere."""

    tokens: Entry = "m"
    requests: int = 1536
    vocabulary: int = 129280

    def program(self, constrain: Constrain) -> Annotated:
        def run(logits: Any, noise: Any) -> Any:
            logits = constrain(logits, self.tokens, None)
            top = jax.lax.top_k(logits, 64)[0]
            kept = jnp.where(logits >= top[:, -1:], logits, -jnp.inf)
            return jnp.argmax(jax.nn.log_softmax(kept) + constrain(noise, self.tokens, None), -1)

        made = array(self.requests, self.vocabulary, dtype=jnp.float32)
        return Annotated(run, (made, made), (P(None, "m"), P(None, "m")), P(self.tokens))


@dataclass(frozen=True)
class Scattered(Record):
    """The sum of a product over a split contraction, a norm, and a narrow product on every device or on its tokens."""

    tokens: Entry = None
    rows: int = 16384
    model: int = 7168

    def program(self, constrain: Constrain) -> Annotated:
        def run(x: Any, o: Any, a: Any) -> Any:
            y = constrain(x @ o, self.tokens, None)
            normed = y * jax.lax.rsqrt(jnp.mean(y * y, -1, keepdims=True) + 1e-6)
            return constrain(constrain(normed @ a, self.tokens, None), None, None), y

        arguments = (array(self.rows, 128 * 128), array(128 * 128, self.model), array(self.model, 2112))
        return Annotated(run, arguments, (P(None, "m"), P("m", None), P()), (P(), P(self.tokens, None)))


@dataclass(frozen=True)
class Experts(Record):
    """A training step of experts: tokens go to them (``exchanged``), or their weights come to the tokens."""

    axes: Axes = (("n", 2), ("e", 8))
    exchanged: bool = True
    groups: int = 16
    experts: int = 256
    capacity: int = 128
    model: int = 2048
    hidden: int = 512

    def program(self, constrain: Constrain) -> Annotated:
        def loss(weights: Any, x: Any) -> Any:
            up, down = weights
            if self.exchanged:
                x = constrain(x, "n", "e", None, None)
            else:
                up, down = constrain(up, None, None, None), constrain(down, None, None, None)
            y = jnp.einsum("gech,ehm->gecm", jax.nn.silu(jnp.einsum("gecm,emh->gech", x, up)), down)
            return mean_square(constrain(y, ("n", "e"), None, None, None))

        e, m, h = self.experts, self.model, self.hidden
        arguments = ((array(e, m, h), array(e, h, m)), array(self.groups, e, self.capacity, m))
        split = P("e" if self.exchanged else ("n", "e"), None, None)
        return Annotated(jax.grad(loss), arguments, ((split, split), P(("n", "e"))), (split, split))


@dataclass(frozen=True)
class Loss(Record):
    """Cross entropy, with gradients, of a head whose logits are split over the vocabulary or gathered."""

    axes: Axes = (("m", 4),)
    gathered: bool = False
    tokens: int = 16384
    model: int = 256
    vocabulary: int = 32000

    def program(self, constrain: Constrain) -> Annotated:
        def loss(head: Any, x: Any, targets: Any) -> Any:
            split = None if self.gathered else "m"
            logits = constrain((x @ head).astype(jnp.float32), None, split)
            hit = jax.nn.one_hot(targets, self.vocabulary, dtype=jnp.float32)
            return jnp.mean(jax.nn.logsumexp(logits, -1) - jnp.sum(logits * constrain(hit, None, split), -1))

        hidden, tokens = array(self.tokens, self.model), array(self.tokens, dtype="int32")
        arguments = array(self.model, self.vocabulary), hidden, tokens
        return Annotated(jax.grad(loss, (0, 1)), arguments, (P(None, "m"), P(), P()), (P(None, "m"), P()))


def made(kind: str, fields: dict[str, Any]) -> JaxForm:
    """Return the program of ``kind`` with ``fields`` as TOML has them."""
    from tools.bench.expert_programs.attention import Ring, Ulysses

    kinds: dict[str, Any] = {
        "dense": Dense,
        "decode": Decode,
        "latent": Latent,
        "heads": Heads,
        "sampling": Sampling,
        "scattered": Scattered,
        "experts": Experts,
        "loss": Loss,
        "ring": Ring,
        "ulysses": Ulysses,
    }
    return kinds[kind](**{name: _value(value) for name, value in fields.items()})  # type: ignore[no-any-return]


def _value(value: Any) -> Any:
    """Return a value of TOML, "" as None and arrays as tuples."""
    if value == "":
        return None
    return tuple(map(_value, value)) if isinstance(value, Sequence) and not isinstance(value, str) else value
