"""Twenty programs with shardings of their arguments and constraints, one of which can be taken out.

``pin(x, "d", None)`` constrains x; ``pin.lacking(x, ...)`` is the one that is taken out. The constraint matters: most
programs take a batch that is whole on every device and weights that are split; without the constraint that splits the
batch propagation sums activations over the axis that the weights are split over.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
from jax.sharding import AbstractMesh, AxisType, NamedSharding, PartitionSpec

import shardpass

Shape = tuple[int, ...]
Spec = tuple[Any, ...]
ONE = {"d": 8}
TWO = {"d": 4, "m": 2}


@dataclass(frozen=True)
class Pin:
    """Constrains values; ``complete`` says whether the one that is to lack is there."""

    mesh: Any
    complete: bool

    def __call__(self, x: Any, *spec: Any) -> Any:
        return jax.lax.with_sharding_constraint(x, NamedSharding(self.mesh, PartitionSpec(*spec)))

    def lacking(self, x: Any, *spec: Any) -> Any:
        return self(x, *spec) if self.complete else x


@dataclass(frozen=True)
class Lacking:
    """A program: ``build(pin)`` is its function, ``arguments`` the shapes and specs of what it takes."""

    name: str
    axes: dict[str, int]
    arguments: tuple[tuple[Shape, Spec], ...]
    taken_out: str
    build: Callable[[Pin], Callable[..., Any]]

    def lower(self, complete: bool) -> Any:
        """As JAX lowers it."""
        mesh = AbstractMesh(tuple(self.axes.values()), tuple(self.axes), axis_types=(AxisType.Auto,) * len(self.axes))
        placed = tuple(NamedSharding(mesh, PartitionSpec(*spec)) for _, spec in self.arguments)
        given = [jax.ShapeDtypeStruct(shape, jnp.float32) for shape, _ in self.arguments]
        jitted = jax.jit(self.build(Pin(mesh, complete)), in_shardings=placed)
        return jitted.trace(*given).lower(lowering_platforms=("cpu",))


PROGRAMS: dict[str, Lacking] = {}
Build = Callable[[Pin], Callable[..., Any]]


def program(axes: dict[str, int], *arguments: tuple[Shape, Spec], out: str) -> Callable[[Build], Build]:
    """Registers a builder under its name; ``out`` says which constraint is taken out."""

    def register(build: Build) -> Build:
        PROGRAMS[build.__name__] = Lacking(build.__name__, axes, arguments, out, build)
        return build

    return register


# ---------------------------------------------------------------- weights split over the axis of the batch


@program(ONE, ((512, 64), ()), ((64, 64), ("d",)), out="each layer over the batch")
def dense(pin: Pin) -> Callable[..., Any]:
    def f(x: Any, w: Any) -> Any:
        for _ in range(3):
            x = jnp.tanh(x @ w)
            x = pin.lacking(x, "d", None)
        return x

    return f


@program(ONE, ((512, 64), ()), ((64, 64), ("d",)), ((64, 64), (None, "d")), out="x over the batch")
def perceptron(pin: Pin) -> Callable[..., Any]:
    def f(x: Any, up: Any, down: Any) -> Any:
        x = pin.lacking(x, "d", None)
        for _ in range(2):
            x = x + jax.nn.relu(x @ up) @ down
        return x

    return f


@program(ONE, ((512, 64), ()), ((64, 256), ("d",)), ((256, 64), ("d",)), out="h over the batch")
def hidden_activation(pin: Pin) -> Callable[..., Any]:
    def f(x: Any, up: Any, down: Any) -> Any:
        h = jax.nn.relu(x @ up)
        h = pin.lacking(h, "d", None)
        return h @ down

    return f


@program(ONE, ((1024, 64), ()), ((64, 64), ("d",)), out="each layer over the batch, in a loss")
def gradient(pin: Pin) -> Callable[..., Any]:
    def loss(w: Any, x: Any) -> Any:
        for _ in range(3):
            x = jnp.tanh(x @ w)
            x = pin.lacking(x, "d", None)
        return jnp.mean(x**2)

    return lambda x, w: jax.grad(loss)(w, x)


@program(ONE, ((1024, 64), ()), ((64, 128), ("d",)), ((128, 64), (None, "d")), out="x over the batch, in a loss")
def gradient_of_two_layers(pin: Pin) -> Callable[..., Any]:
    def loss(weights: Any, x: Any) -> Any:
        x = pin.lacking(x, "d", None)
        return jnp.mean((jnp.tanh(x @ weights[0]) @ weights[1]) ** 2)

    return lambda x, up, down: jax.grad(loss)((up, down), x)


@program(ONE, ((64, 32, 64), ()), ((64, 64), ("d",)), out="each layer over the batch")
def tokens(pin: Pin) -> Callable[..., Any]:
    def f(x: Any, w: Any) -> Any:
        for _ in range(3):
            x = x + jax.nn.gelu(jnp.einsum("bsd,de->bse", x, w))
            x = pin.lacking(x, "d", None, None)
        return x

    return f


@program(ONE, ((512, 64), ()), ((6, 64, 64), (None, "d")), out="the start of a scan over the batch")
def scanned_layers(pin: Pin) -> Callable[..., Any]:
    def f(x: Any, weights: Any) -> Any:
        x = pin.lacking(x, "d", None)

        def layer(h: Any, w: Any) -> Any:
            return jnp.tanh(h @ w), None

        return jax.lax.scan(layer, x, weights)[0]

    return f


@program(ONE, ((32, 16, 16, 16), ()), ((3, 3, 16, 16), (None, None, "d")), out="each image over the batch")
def convolution(pin: Pin) -> Callable[..., Any]:
    def f(x: Any, kernel: Any) -> Any:
        for _ in range(3):
            y = jax.lax.conv_general_dilated(x, kernel, (1, 1), "SAME", dimension_numbers=("NHWC", "HWIO", "NHWC"))
            x = pin.lacking(x + jax.nn.relu(y), "d", None, None, None)
        return x

    return f


@program(ONE, ((512, 64), ()), ((64, 128), ("d",)), out="a normalised activation over the batch")
def layer_norm(pin: Pin) -> Callable[..., Any]:
    def f(x: Any, w: Any) -> Any:
        centred = x - x.mean(-1, keepdims=True)
        normal = centred / jnp.sqrt((centred * centred).mean(-1, keepdims=True) + 1e-5)
        normal = pin.lacking(normal, "d", None)
        return normal @ w

    return f


@program(ONE, ((512, 64), ()), ((64, 64), ("d",)), out="the residual stream over the batch")
def residual(pin: Pin) -> Callable[..., Any]:
    def f(x: Any, w: Any) -> Any:
        x = pin.lacking(x, "d", None)
        for _ in range(3):
            x = x + jnp.tanh(x @ w)
        return x

    return f


@program(ONE, ((512, 64), ()), ((64, 64), ("d",)), ((64, 64), ("d",)), out="each layer over the batch")
def gated_unit(pin: Pin) -> Callable[..., Any]:
    def f(x: Any, w: Any, v: Any) -> Any:
        for _ in range(3):
            x = x + jax.nn.sigmoid(x @ v) * (x @ w)
            x = pin.lacking(x, "d", None)
        return x

    return f


@program(ONE, ((512, 64), ()), ((64, 64), ("d",)), ((512, 64), ()), out="what is predicted over the batch")
def regression(pin: Pin) -> Callable[..., Any]:
    def loss(w: Any, x: Any, y: Any) -> Any:
        for _ in range(2):
            x = x + jnp.sin(x @ w)
            x = pin.lacking(x, "d", None)
        return jnp.mean((x - y) ** 2)

    return lambda x, w, y: jax.value_and_grad(loss)(w, x, y)


# ---------------------------------------------------------------- attention, tables, experts


@program(ONE, ((32, 16, 64), ()), *((((64, 64), ("d",)),) * 4), out="each layer's tokens over the batch")
def attention(pin: Pin) -> Callable[..., Any]:
    def f(x: Any, wq: Any, wk: Any, wv: Any, wo: Any) -> Any:
        for _ in range(2):
            q, k, v = (jnp.einsum("bsd,dk->bsk", x, w) for w in (wq, wk, wv))
            weights = jax.nn.softmax(jnp.einsum("bsk,btk->bst", q, k))
            x = x + jnp.einsum("bst,btk,kd->bsd", weights, v, wo)
            x = pin.lacking(x, "d", None, None)
        return x

    return f


@program(TWO, ((8, 64, 32), ("d", "m")), ((32, 32), ()), out="mixed tokens over batch and sequence")
def sequence_mixing(pin: Pin) -> Callable[..., Any]:
    def f(x: Any, w: Any) -> Any:
        scores = jnp.einsum("bsd,btd->bst", x @ w, x)
        mixed = jnp.einsum("bst,btd->bsd", scores, x)
        mixed = pin.lacking(mixed, "d", "m", None)
        return mixed * mixed

    return f


@program(ONE, ((512, 64), ("d",)), ((256, 512), ()), out="the one-hot rows over the batch")
def one_hot_embedding(pin: Pin) -> Callable[..., Any]:
    def f(table: Any, hot: Any) -> Any:
        hot = pin.lacking(hot, "d", None)
        return jnp.tanh(hot @ table)

    return f


@program(ONE, ((64, 16, 8), ()), ((64, 16, 32), ()), ((8, 32, 64), (None, "d")), out="tokens over the groups")
def experts(pin: Pin) -> Callable[..., Any]:
    def f(gates: Any, x: Any, up: Any) -> Any:
        inputs = jnp.einsum("gte,gtm->egtm", gates, x)
        inputs = pin.lacking(inputs, None, "d", None, None)
        return jnp.einsum("egtm,emh->egth", inputs, up)

    return f


@program(ONE, ((512, 64), ()), ((64, 64), ("d",)), ((64, 256), ("d",)), out="hidden states over the batch")
def classes(pin: Pin) -> Callable[..., Any]:
    def f(h: Any, w: Any, table: Any) -> Any:
        for _ in range(2):
            h = h + jnp.tanh(h @ w)
            h = pin.lacking(h, "d", None)
        return jax.nn.logsumexp(h @ table, axis=-1)

    return f


# ---------------------------------------------------------------- other shapes


@program(ONE, ((64, 8, 32), ()), ((32, 32), ("d",)), ((32, 4, 32), ("d",)), out="rows over the batch")
def split_heads(pin: Pin) -> Callable[..., Any]:
    def f(x: Any, w: Any, heads: Any) -> Any:
        x = pin.lacking(x, "d", None, None)
        rows = jnp.tanh(x.reshape(512, 32) @ w)
        return jnp.cos((rows @ heads.reshape(32, 128)).reshape(64, 8, 4, 32))

    return f


@program(TWO, ((512, 64), ()), ((64, 128), ("d", "m")), ((128, 64), ("m", "d")), out="x over the batch")
def megatron(pin: Pin) -> Callable[..., Any]:
    def f(x: Any, up: Any, down: Any) -> Any:
        x = pin.lacking(x, "d", None)
        for _ in range(3):
            x = x + jax.nn.gelu(x @ up) @ down
        return x

    return f


@program(ONE, ((32, 64, 32), (None, "d")), ((32, 32), ("d",)), ((32, 32), ("d",)), out="hidden states over the batch")
def recurrence(pin: Pin) -> Callable[..., Any]:
    def f(xs: Any, w: Any, u: Any) -> Any:
        def step(h: Any, x: Any) -> Any:
            z = h @ w + x @ u
            z = pin.lacking(z, "d", None)
            h = jnp.tanh(z)
            return h, h

        return jax.lax.scan(step, jnp.zeros((64, 32)), xs)[1]

    return f


# ---------------------------------------------------------------- verdicts

AS_GOOD = 1.02
DEARER = 1.05


@dataclass(frozen=True)
class Verdict:
    """Bytes that a device receives with all constraints, without one, and with the first hint (None: no hint)."""

    name: str
    complete: int
    lacking: int
    hinted: int | None
    taken_out: str
    hint: str

    @property
    def proves(self) -> bool:
        return self.lacking > DEARER * self.complete

    @property
    def good(self) -> bool:
        return self.hinted is not None and self.hinted <= AS_GOOD * self.complete


def judge(program: Lacking) -> Verdict:
    """Return the verdict on one program."""
    complete = shardpass.explain(program.lower(complete=True), effort=0)
    found = shardpass.explain(program.lower(complete=False), effort=0, hints=True)
    first = found.hints[0] if found.hints else None
    return Verdict(
        program.name,
        int(complete.plan.bytes_received),
        int(found.plan.bytes_received),
        None if first is None else first.after,
        program.taken_out,
        "-" if first is None else first.code,
    )
