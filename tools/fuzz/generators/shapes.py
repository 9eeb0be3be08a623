"""Random ops on shapes: broadcasts, transposes, reshapes, slices, pads, joins, rolls."""

from __future__ import annotations

from dataclasses import replace
from math import prod

from tools.fuzz.maker import LARGEST, SIZES, Emitter, Maker, Unsuited
from tools.fuzz.random_sharding import random_sharding
from tools.stablehlo_text import array, literal
from tools.values import Fact, Type


def broadcast(make: Maker) -> None:
    at = make.pick(lambda f: len(f.type.shape) < 3)
    fact, rng = make.facts[at], make.rng
    rank = rng.randint(max(1, len(fact.type.shape)), 3)
    dims = sorted(rng.sample(range(rank), len(fact.type.shape)))
    if rng.random() < 0.3:
        rng.shuffle(dims)
    shape = list(make.shape(rank))
    for source, dim in enumerate(dims):
        size = fact.type.shape[source]
        shape[dim] = size if size != 1 or rng.random() < 0.5 else rng.choice(SIZES)
    if prod(shape) > LARGEST:
        raise Unsuited
    result = replace(fact, type=Type(tuple(shape), fact.type.element))
    make.add("stablehlo.broadcast_in_dim", [at], [result], f"broadcast_dimensions = {array(dims)}")


def transpose(make: Maker) -> None:
    at = make.pick(lambda f: len(f.type.shape) > 1)
    fact = make.facts[at]
    order = list(range(len(fact.type.shape)))
    make.rng.shuffle(order)
    shape = tuple(fact.type.shape[d] for d in order)
    make.add(
        "stablehlo.transpose", [at], [replace(fact, type=Type(shape, fact.type.element))],
        f"permutation = {array(order)}",
    )  # fmt: skip


def reshape(make: Maker) -> None:
    at = make.pick()
    fact, rng = make.facts[at], make.rng
    left = fact.type.count
    shape: list[int] = []
    if left == 0:
        raise Unsuited
    while left > 1 and len(shape) < 3:
        divisors = [d for d in range(2, left + 1) if left % d == 0]
        size = rng.choice(divisors)
        shape.append(size)
        left //= size
    if left > 1:
        shape.append(left)
    rng.shuffle(shape)
    if rng.random() < 0.3:
        shape.insert(rng.randint(0, len(shape)), 1)
    make.add("stablehlo.reshape", [at], [replace(fact, type=Type(tuple(shape), fact.type.element))])


def slice_(make: Maker) -> None:
    at = make.pick(lambda f: len(f.type.shape) > 0)
    fact, rng = make.facts[at], make.rng
    starts, limits, strides, shape = [], [], [], []
    for size in fact.type.shape:
        start, limit, stride = 0, size, 1
        if rng.random() < 0.5 and size:
            start = rng.randrange(size)
            limit, stride = rng.randint(start + 1, size), rng.choice((1, 1, 2, 3))
        starts.append(start)
        limits.append(limit)
        strides.append(stride)
        shape.append(-(-(limit - start) // stride))
    attributes = f"start_indices = {array(starts)}, limit_indices = {array(limits)}, strides = {array(strides)}"
    make.add("stablehlo.slice", [at], [replace(fact, type=Type(tuple(shape), fact.type.element))], attributes)


def pad(make: Maker) -> None:
    at = make.pick(lambda f: len(f.type.shape) > 0)
    fact, rng = make.facts[at], make.rng
    low, high, interior, shape = [], [], [], []
    for size in fact.type.shape:
        row = (0, 0, 0) if rng.random() < 0.5 else (rng.randint(-1, 2), rng.randint(-1, 2), rng.choice((0, 0, 1, 2)))
        total = size + row[0] + row[1] + max(0, size - 1) * row[2]
        if total < 0:
            row, total = (0, 0, 0), size
        low.append(row[0])
        high.append(row[1])
        interior.append(row[2])
        shape.append(total)
    if prod(shape) > LARGEST:
        raise Unsuited
    value = make.constant(fact.type.element, literal(fact.type.element, 1), bound=1)
    attributes = (
        f"edge_padding_low = {array(low)}, edge_padding_high = {array(high)}, interior_padding = {array(interior)}"
    )
    make.add("stablehlo.pad", [at, value], [replace(fact, type=Type(tuple(shape), fact.type.element))], attributes)


def concatenate(make: Maker) -> None:
    at = make.pick(lambda f: len(f.type.shape) > 0)
    fact, rng = make.facts[at], make.rng
    along = rng.randrange(len(fact.type.shape))

    def fits(other: Fact) -> bool:
        a, b = list(fact.type.shape), list(other.type.shape)
        if len(a) != len(b) or other.type.element != fact.type.element:
            return False
        a[along] = b[along] = 0
        return a == b

    operands = [at] + [i for _ in range(rng.randint(1, 2)) if (i := make.find(fits)) is not None]
    facts = [make.facts[i] for i in operands]
    shape = list(fact.type.shape)
    shape[along] = sum(f.type.shape[along] for f in facts)
    if prod(shape) > LARGEST:
        raise Unsuited
    result = Fact(Type(tuple(shape), fact.type.element), max(f.bound for f in facts), all(f.exact for f in facts))
    make.add("stablehlo.concatenate", operands, [result], f"dimension = {along} : i64")


def reverse(make: Maker) -> None:
    at = make.pick(lambda f: len(f.type.shape) > 0)
    fact = make.facts[at]
    dims = [d for d in range(len(fact.type.shape)) if make.rng.random() < 0.5]
    make.add("stablehlo.reverse", [at], [fact], f"dimensions = {array(dims)}")


def roll(make: Maker) -> None:
    """As jnp.roll by a known amount: the parts of one value, joined the other way round."""
    at = make.pick(lambda f: any(n > 1 for n in f.type.shape))
    fact, rng = make.facts[at], make.rng
    shape = fact.type.shape
    dim = rng.choice([d for d, n in enumerate(shape) if n > 1])
    cut = rng.randrange(1, shape[dim])
    parts = [_part(make, at, dim, low, high) for low, high in ((cut, shape[dim]), (0, cut))]
    make.add("stablehlo.concatenate", parts, [fact], f"dimension = {dim} : i64")


def _part(make: Maker, at: int, dim: int, low: int, high: int) -> int:
    fact = make.facts[at]
    shape = fact.type.shape
    starts = [low if d == dim else 0 for d in range(len(shape))]
    limits = [high if d == dim else n for d, n in enumerate(shape)]
    part = replace(fact, type=Type(tuple(b - a for a, b in zip(starts, limits, strict=True)), fact.type.element))
    attributes = (
        f"start_indices = {array(starts)}, limit_indices = {array(limits)}, strides = {array([1] * len(shape))}"
    )
    return make.add("stablehlo.slice", [at], [part], attributes)


def stencil(make: Maker) -> None:
    """A value and its neighbours along a dimension: the sum of slices of a padded value, or of rolls."""
    at = make.pick(lambda f: f.type.element in ("f32", "i32") and any(n > 1 for n in f.type.shape) and f.bound < 2**16)
    fact, rng = make.facts[at], make.rng
    shape = fact.type.shape
    dim = rng.choice([d for d, n in enumerate(shape) if n > 1])
    wide, size = rng.randint(1, 2), shape[dim]
    rows = [(wide if d == dim else 0) for d in range(len(shape))]
    zero = make.constant(fact.type.element, literal(fact.type.element, 0), bound=1)
    full = tuple(n + 2 * wide if d == dim else n for d, n in enumerate(shape))
    around = make.add(
        "stablehlo.pad", [at, zero], [replace(fact, type=Type(full, fact.type.element))],
        f"edge_padding_low = {array(rows)}, edge_padding_high = {array(rows)}, "
        f"interior_padding = {array([0] * len(shape))}",
    )  # fmt: skip
    total = at
    for shift in rng.sample(range(2 * wide + 1), 2):
        part = _part(make, around, dim, shift, shift + size)
        total = make.elementwise("add", [total, part], bound=make.facts[total].bound + fact.bound)


def split_joined(make: Maker) -> None:
    """Halves that are joined along another dimension: what a rotary embedding does, and pixel shuffles."""
    at = make.pick(lambda f: len(f.type.shape) > 1 and any(n > 1 and n % 2 == 0 for n in f.type.shape))
    fact, rng = make.facts[at], make.rng
    shape = fact.type.shape
    dim = rng.choice([d for d, n in enumerate(shape) if n > 1 and n % 2 == 0])
    along = rng.randrange(len(shape))
    half = shape[dim] // 2
    parts = [_part(make, at, dim, 0, half), _part(make, at, dim, half, 2 * half)]
    if rng.random() < 0.5:
        parts.reverse()
    joined = list(make.facts[parts[0]].type.shape)
    joined[along] *= 2
    result = replace(fact, type=Type(tuple(joined), fact.type.element))
    make.add("stablehlo.concatenate", parts, [result], f"dimension = {along} : i64")


def constraint(make: Maker) -> None:
    at = make.pick()
    fact = make.facts[at]
    make.add("stablehlo.custom_call", [at], [fact], 'call_target_name = "Sharding", backend_config = ""')
    make.nodes[-1] = replace(make.nodes[-1], sharding=random_sharding(make.rng, make.mesh, fact.type.shape))


def old_broadcast(make: Maker) -> None:
    """New dimensions before the others, as StableHLO once said it."""
    at = make.pick(lambda f: 0 < f.type.count < 200)
    fact = make.facts[at]
    new = tuple(make.rng.choice((1, 2, 3, 4)) for _ in range(make.rng.randint(1, 2)))
    result = replace(fact, type=Type((*new, *fact.type.shape), fact.type.element))
    make.add("stablehlo.broadcast", [at], [result], f"broadcast_sizes = {array(new)}")


EMITTERS: dict[Emitter, int] = {
    broadcast: 5, transpose: 4, reshape: 5, slice_: 4, pad: 4, concatenate: 4, reverse: 3, roll: 2, stencil: 2,
    split_joined: 1, constraint: 3, old_broadcast: 1,
}  # fmt: skip
