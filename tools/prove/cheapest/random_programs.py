"""Random small programs that look like what users write: the same for a seed, on every machine.

A program is a chain of 3 to 12 ops over a few sizes that it draws once (batch, widths, vocabulary), powers of two
between 4 and 4096, so that dimensions meet and bytes matter beside a collective's latency. Weights are drawn anew, or
one of the same shape is used again (tied weights), also as its transpose. ``STYLES`` says what is annotated.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from random import Random

from tools.prove.cheapest.drafts import Dims, Draft

MESHES = ((("d", 2), ("m", 2)), (("d", 4), ("m", 2)), (("d", 2), ("m", 4)))
SMALLEST, LARGEST = 3, 12  # ops
ELEMENTS = 2**22  # of a value, at most


@dataclass(frozen=True, slots=True)
class Example:
    """A program: its text, and how it was annotated."""

    seed: int
    style: str
    text: str
    mesh: tuple[tuple[str, int], ...]


class _Maker:
    """A program that grows. ``weights`` are arguments that products and sums may use again; ``batch`` leading sizes."""

    def __init__(self, rng: Random, mesh: tuple[tuple[str, int], ...]) -> None:
        self.rng = rng
        self.draft = Draft(mesh)
        self.rows = 2 ** rng.randint(2, 12)
        self.widths = [1 << rng.randint(2, 10) for _ in range(2)]
        self.inputs: list[str] = []
        self.weights: list[str] = []
        self.current = ""

    # ---------------------------------------------------------------- picking

    def width(self) -> int:
        return self.rng.choice(self.widths)

    def weight(self, *shape: int) -> str:
        """A weight of ``shape``, new or used before."""
        known = [w for w in self.weights if self.draft.shape(w) == shape]
        if known and self.rng.random() < 0.4:
            return self.rng.choice(known)
        made = self.draft.argument(shape)
        self.weights.append(made)
        return made

    def values(self, accept: Callable[[tuple[int, ...]], bool]) -> list[str]:
        """Float values of ops and inputs whose shape suits, the latest last."""
        types = self.draft.types
        return [v for v in types if v not in self.weights and types[v].element == "f32" and accept(types[v].shape)]

    def pick(self, accept: Callable[[tuple[int, ...]], bool]) -> str | None:
        """One that suits, the current value rather."""
        found = self.values(accept)
        if self.current in found and self.rng.random() < 0.75:
            return self.current
        return self.rng.choice(found) if found else None

    # ---------------------------------------------------------------- steps: True where one was made

    def start(self) -> None:
        draft, rng = self.draft, self.rng
        sort = rng.random()
        if sort < 0.15:
            rows = draft.argument([self.rows], "i32")
            table = self.weight(2 ** rng.randint(4, 12), self.width())
            self.inputs.append(rows)
            self.current = draft.lookup(table, rows)
        elif sort < 0.3:
            self.current = draft.argument([2 ** rng.randint(2, 5), 2 ** rng.randint(2, 7), self.width()])
            self.inputs.append(self.current)
        else:
            self.current = draft.argument([self.rows, self.width()])
            self.inputs.append(self.current)

    def product(self) -> bool:
        """``x @ w``, or ``x @ w.T``."""
        value = self.pick(lambda shape: len(shape) in (2, 3))
        if value is None:
            return False
        *lead, width = self.draft.shape(value)
        other = self.width()
        last = len(lead)
        if self.rng.random() < 0.7:
            self.current = self.draft.dot(value, self.weight(width, other), (last, 0))
        else:
            self.current = self.draft.dot(value, self.weight(other, width), (last, 1))
        return True

    def gradient(self) -> bool:
        """``x.T @ g`` of two values with the same rows."""
        one = self.pick(lambda shape: len(shape) == 2)
        if one is None:
            return False
        rows = self.draft.shape(one)[0]
        others = self.values(lambda shape: len(shape) == 2 and shape[0] == rows)
        made = self.draft.dot(self.rng.choice(others), one, (0, 0))
        if self.rng.random() < 0.4:
            self.current = made
        return True

    def attention(self) -> bool:
        """A product of two values of rank 3 in batches: scores, or scores by values."""
        one = self.pick(lambda shape: len(shape) == 3)
        if one is None:
            return False
        batch, _, width = self.draft.shape(one)
        others = self.values(lambda shape: len(shape) == 3 and shape[0] == batch and width in shape[1:])
        if not others:
            return False
        other = self.rng.choice(others)
        along = 2 if self.draft.shape(other)[2] == width else 1
        self.current = self.draft.dot(one, other, (2, along), 1)
        return True

    def unary(self) -> bool:
        value = self.pick(lambda shape: bool(shape))
        if value is None:
            return False
        self.current = self.draft.unary(self.rng.choice(("tanh", "exponential", "negate")), value)
        return True

    def binary(self) -> bool:
        """A residual sum or a product of two values of one shape."""
        value = self.pick(lambda shape: bool(shape))
        if value is None:
            return False
        shape = self.draft.shape(value)
        found = [v for v in self.values(lambda s: s == shape) if v != value]
        if not found:
            return False
        self.current = self.draft.binary(self.rng.choice(("add", "multiply")), value, self.rng.choice(found))
        return True

    def bias(self) -> bool:
        value = self.pick(lambda shape: len(shape) in (2, 3))
        if value is None:
            return False
        shape = self.draft.shape(value)
        wide = self.draft.broadcast(self.weight(shape[-1]), [len(shape) - 1], shape)
        self.current = self.draft.binary("add", value, wide)
        return True

    def reduction(self) -> bool:
        value = self.pick(lambda shape: len(shape) > 1)
        if value is None:
            return False
        shape = self.draft.shape(value)
        dim = self.rng.choice((0, len(shape) - 1, len(shape) - 1))
        made = self.draft.reduce(self.rng.choice(("add", "maximum")), value, dim)
        if self.rng.random() < 0.6:  # and back, as a softmax or a norm does
            wide = self.draft.broadcast(made, [d for d in range(len(shape)) if d != dim], shape)
            self.current = self.draft.binary("multiply", value, wide)
        return True

    def transpose(self) -> bool:
        value = self.pick(lambda shape: len(shape) in (2, 3))
        if value is None:
            return False
        rank = len(self.draft.shape(value))
        order = (1, 0) if rank == 2 else self.rng.choice(((1, 0, 2), (0, 2, 1)))
        self.current = self.draft.transpose(value, order)
        return True

    def reshape(self) -> bool:
        """Two leading dimensions made one, or one made two (heads, or a batch of sequences)."""
        value = self.pick(lambda shape: len(shape) in (2, 3))
        if value is None:
            return False
        shape = self.draft.shape(value)
        if len(shape) == 3:
            to = (shape[0] * shape[1], shape[2]) if self.rng.random() < 0.6 else (shape[0], shape[1] * shape[2])
            if max(to) > 4096:
                return False
        else:
            dim = self.rng.choice((0, 1))
            if shape[dim] < 16:
                return False
            part = 2 ** self.rng.randint(2, shape[dim].bit_length() - 3)
            to = (*shape[:dim], part, shape[dim] // part, *shape[dim + 1 :])
        self.current = self.draft.reshape(value, to)
        return True


STEPS: dict[Callable[[_Maker], bool], int] = {
    _Maker.product: 10, _Maker.gradient: 3, _Maker.attention: 4, _Maker.unary: 5, _Maker.binary: 5, _Maker.bias: 3,
    _Maker.reduction: 3, _Maker.transpose: 2, _Maker.reshape: 2,
}  # fmt: skip


# ---------------------------------------------------------------- annotations


def _fits(draft: Draft, value: str, dims: Dims) -> bool:
    sizes = dict(draft.mesh)
    for size, axes in zip(draft.shape(value), dims, strict=True):
        for axis in axes:
            if size % sizes[axis]:
                return False
            size //= sizes[axis]
    return True


def _say(make: _Maker, value: str, splits: dict[int, tuple[str, ...]]) -> None:
    rank = len(make.draft.shape(value))
    dims = tuple(splits.get(dim, ()) for dim in range(rank))
    if _fits(make.draft, value, dims):
        make.draft.annotations[value] = dims


def _any_dims(make: _Maker, value: str) -> dict[int, tuple[str, ...]]:
    """Each axis on a random dimension, or on none."""
    out: dict[int, tuple[str, ...]] = {}
    for axis in ("d", "m"):
        dim = make.rng.randrange(len(make.draft.shape(value)) + 1)
        out[dim] = (*out.get(dim, ()), axis)
    return {dim: axes for dim, axes in out.items() if dim < len(make.draft.shape(value))}


def _fsdp(make: _Maker) -> None:
    """Batch and weights over the same axis, or both over both."""
    axes: tuple[str, ...] = make.rng.choice((("d",), ("d", "m")))
    column = make.rng.random() < 0.3
    for value in make.inputs:
        _say(make, value, {0: axes})
    for value in make.weights:
        _say(make, value, {len(make.draft.shape(value)) - 1 if column else 0: axes})


def _two_dimensional(make: _Maker) -> None:
    """Batch over d, weights over both axes, one on each dimension."""
    for value in make.inputs:
        _say(make, value, {0: ("d",)})
    for value in make.weights:
        one, other = make.rng.sample(("d", "m"), 2)
        _say(make, value, {0: (one,), 1: (other,)} if len(make.draft.shape(value)) == 2 else {0: (one,)})


def _tensor_parallel(make: _Maker) -> None:
    """Batch over d, weights over m on one dimension."""
    for value in make.inputs:
        _say(make, value, {0: ("d",)})
    for place, value in enumerate(make.weights):
        _say(make, value, {(place + 1) % len(make.draft.shape(value)): ("m",)})


def _some(make: _Maker) -> None:
    for value in make.draft.arguments:
        if make.rng.random() < 0.6:
            _say(make, value, _any_dims(make, value))


def _inputs(make: _Maker) -> None:
    for value in make.inputs:
        _say(make, value, {0: make.rng.choice((("d",), ("m",), ("d", "m")))})


def _weights(make: _Maker) -> None:
    for value in make.weights:
        _say(make, value, _any_dims(make, value))


def _outputs(make: _Maker) -> None:
    _some(make)
    for value in make.draft.results:
        if make.rng.random() < 0.7:
            _say(make, value, _any_dims(make, value))


STYLES: dict[str, tuple[Callable[[_Maker], None], int]] = {
    "fsdp": (_fsdp, 6), "2d": (_two_dimensional, 4), "tensor parallel": (_tensor_parallel, 3), "some": (_some, 3),
    "inputs": (_inputs, 2), "weights": (_weights, 2), "outputs": (_outputs, 2),
}  # fmt: skip


def random_program(seed: int) -> Example:
    """The program of ``seed``."""
    rng = Random(seed)
    mesh = rng.choice(MESHES)
    make = _Maker(rng, mesh)
    make.start()
    wanted = rng.randint(SMALLEST, LARGEST)
    for _ in range(1000):
        if len(make.draft.lines) >= wanted:
            break
        before = _copy(make)
        (step,) = rng.choices(list(STEPS), list(STEPS.values()))
        step(make)
        large = any(kind.count > ELEMENTS or max(kind.shape, default=1) > 4096 for kind in make.draft.types.values())
        if large or len(make.draft.lines) > LARGEST:
            _restore(make, before)
        elif rng.random() < 0.04 and len(make.draft.lines) < LARGEST:
            _constrain(make)
    style = rng.choices(list(STYLES), [weight for _, weight in STYLES.values()])[0]
    STYLES[style][0](make)
    return Example(seed, style, make.draft.text(), mesh)


def _constrain(make: _Maker) -> None:
    """``with_sharding_constraint`` of the current value."""
    splits = _any_dims(make, make.current)
    dims = tuple(splits.get(dim, ()) for dim in range(len(make.draft.shape(make.current))))
    if _fits(make.draft, make.current, dims):
        make.current = make.draft.constraint(make.current, dims)


def _copy(make: _Maker) -> tuple[object, ...]:
    draft = make.draft
    return (
        dict(draft.types),
        list(draft.arguments),
        list(draft.lines),
        set(draft.used),
        list(make.weights),
        make.current,
    )


def _restore(make: _Maker, before: tuple[object, ...]) -> None:
    draft = make.draft
    draft.types, draft.arguments, draft.lines, draft.used, make.weights, make.current = before  # type: ignore[assignment]
