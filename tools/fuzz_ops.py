"""Random ops for the fuzzer: each emitter adds one valid op to a program that grows, or gives up.

To add an op, write an emitter ``def f(make: Maker) -> bool`` and put it into ``EMITTERS`` with a weight. Emitters keep
each value's bound below what its type holds exactly (see ``fuzz_programs.Fact``).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from math import prod
from random import Random

from fuzz_programs import EXACT, FLOATS, INTEGERS, MESHES, Fact, Node, Program, Type, random_sharding

from shardpass.sharding import Mesh

SIZES = (1, 2, 3, 4, 5, 6, 7, 8, 9, 12, 16)
ELEMENTS = ("f32",) * 6 + ("i32",) * 4 + ("f64", "bf16", "i1", "i1", "i64", "ui8", "complex<f32>", "f16", "i8", "ui32")
LARGEST = 4096  # elements of a value


class Maker:
    """A program that grows: ``pick`` chooses operands, ``add`` appends an op and returns its first value's index."""

    def __init__(self, rng: Random, mesh: Mesh) -> None:
        self.rng, self.mesh = rng, mesh
        self.arguments: list[tuple[Fact, str]] = []
        self.nodes: list[Node] = []
        self.made: list[Fact] = []

    @property
    def facts(self) -> list[Fact]:
        return [f for f, _ in self.arguments] + self.made

    def shape(self, rank: int | None = None) -> tuple[int, ...]:
        rank = self.rng.choice((0, 1, 1, 2, 2, 2, 3, 3)) if rank is None else rank
        while True:
            sizes = tuple(0 if self.rng.random() < 0.01 else self.rng.choice(SIZES) for _ in range(rank))
            if prod(sizes) <= LARGEST // 4:
                return sizes

    def sharding(self, shape: tuple[int, ...], chance: float) -> str:
        return random_sharding(self.rng, self.mesh, shape) if self.rng.random() < chance else ""

    def pick(self, accept: Callable[[Fact], bool] = lambda fact: True) -> int | None:
        """A value that ``accept`` takes, the later ones rather."""
        found = [i for i, fact in enumerate(self.facts) if accept(fact)]
        if not found:
            return None
        late = found[-3:] if self.rng.random() < 0.6 else found
        return self.rng.choice(late)

    def add(
        self,
        name: str,
        operands: Sequence[int],
        results: Sequence[Fact],
        attributes: str = "",
        regions: str = "",
        captured: Sequence[int] = (),
    ) -> int:
        first = len(self.facts)
        one = len(results) == 1 and name != "stablehlo.constant"
        sharding = self.sharding(results[0].type.shape, 0.12) if one else ""
        self.nodes.append(Node(name, tuple(operands), tuple(results), attributes, regions, sharding, tuple(captured)))
        self.made += results
        return first

    def constant(self, element: str, values: str, shape: tuple[int, ...] = (), bound: float = 3) -> int:
        kind = Type(shape, element)
        return self.add("stablehlo.constant", (), [Fact(kind, bound)], f"value = dense<{values}> : {kind}")


def literal(element: str, value: int) -> str:
    if element == "i1":
        return "true" if value else "false"
    if element.startswith("complex"):
        return f"({value}.0, 0.0)"
    return f"{value}.0" if element in FLOATS else str(value)


def array(values: Sequence[int]) -> str:
    return f"array<i64: {', '.join(map(str, values))}>" if values else "array<i64>"


# ---------------------------------------------------------------- elementwise

EXACT_UNARY = {
    "negate": (*FLOATS, "i32", "i64", "i8", "complex<f32>"),
    "abs": (*FLOATS, "i32", "i64", "i8"),
    "sign": (*FLOATS, "i32", "i64"),
    "floor": FLOATS,
    "round_nearest_even": FLOATS,
    "not": ("i1", *INTEGERS),
    "popcnt": INTEGERS,
    "count_leading_zeros": INTEGERS,
}
ROUGH_UNARY = ("tanh", "logistic", "sine", "exponential", "log_plus_one")
BITWISE = ("i1", *INTEGERS)


def unary(make: Maker) -> bool:
    name = make.rng.choice(list(EXACT_UNARY))
    at = make.pick(lambda f: f.type.element in EXACT_UNARY[name] and (f.exact or name in ("negate", "abs")))
    if at is None:
        return False
    make.add(f"stablehlo.{name}", [at], [make.facts[at]])
    return True


def rough(make: Maker) -> bool:
    at = make.pick(lambda f: f.type.element in ("f32", "f64") and f.bound <= 8)
    if at is None:
        return False
    name = make.rng.choice(ROUGH_UNARY)
    operand = at
    if name == "log_plus_one":
        operand = make.add("stablehlo.abs", [at], [make.facts[at]])
    fact = make.facts[operand]
    bound = {"exponential": 3000.0, "log_plus_one": 3.0}.get(name, 1.0)
    make.add(f"stablehlo.{name}", [operand], [replace(fact, bound=bound, exact=False)])
    return True


def partner(make: Maker, at: int) -> int:
    """Another value of the same type; ``at`` itself where there is none."""
    kind = make.facts[at].type
    found = make.pick(lambda f: f.type == kind)
    return at if found is None else found


def binary(make: Maker) -> bool:
    at = make.pick()
    if at is None:
        return False
    other = partner(make, at)
    if make.rng.random() < 0.5:
        at, other = other, at
    a, b = make.facts[at], make.facts[other]
    element = a.type.element
    bound, exact = max(a.bound, b.bound), a.exact and b.exact
    choices = ["add", "multiply"]
    if not element.startswith("complex"):
        choices += ["maximum", "minimum"]
    if element in BITWISE:
        choices += ["and", "or", "xor"]
    if element != "i1":
        choices += ["subtract"]
    name = make.rng.choice(choices)
    if name in ("add", "subtract"):
        bound = a.bound + b.bound
    if name == "multiply":
        bound = a.bound * b.bound
    if element in EXACT and bound > EXACT[element]:
        return False
    make.add(f"stablehlo.{name}", [at, other], [Fact(a.type, bound, exact)])
    return True


def compare(make: Maker) -> bool:
    at = make.pick(lambda f: f.exact and f.type.element != "i1")
    if at is None:
        return False
    kind = make.facts[at].type
    other = make.pick(lambda f: f.type == kind and f.exact)
    direction = make.rng.choice(("EQ", "NE") if kind.element.startswith("complex") else ("EQ", "NE", "LT", "GE"))
    result = Fact(Type(kind.shape, "i1"), 1)
    attribute = f"comparison_direction = #stablehlo<comparison_direction {direction}>"
    make.add("stablehlo.compare", [at, at if other is None else other], [result], attribute)
    return True


def select(make: Maker) -> bool:
    at = make.pick()
    assert at is not None
    other = partner(make, at)
    a, b = make.facts[at], make.facts[other]
    pred = make.pick(lambda f: f.type.element == "i1" and f.type.shape in ((), a.type.shape))
    if pred is None:
        pred = make.constant("i1", make.rng.choice(("true", "false")))
    make.add("stablehlo.select", [pred, at, other], [Fact(a.type, max(a.bound, b.bound), a.exact and b.exact)])
    return True


def clamp(make: Maker) -> bool:
    at = make.pick(lambda f: f.type.element in (*FLOATS, *INTEGERS))
    if at is None:
        return False
    fact = make.facts[at]
    low = make.constant(fact.type.element, literal(fact.type.element, 0))
    high = make.constant(fact.type.element, literal(fact.type.element, 2))
    make.add("stablehlo.clamp", [low, at, high], [replace(fact, bound=2.0)])
    return True


def convert(make: Maker) -> bool:
    target = make.rng.choice(ELEMENTS)
    limit = 60 if target in ("i8", "ui8") else EXACT.get(target, 2**31)
    at = make.pick(lambda f: f.exact and f.bound <= limit and not f.type.element.startswith("complex"))
    if at is None or target.startswith("ui") or make.facts[at].type.element == "ui64":
        return False
    fact = make.facts[at]
    if fact.type.element in INTEGERS and fact.bound > limit:
        return False
    if fact.type.element in INTEGERS and target in EXACT:  # wrapped integers may be of any size
        at = make.add("stablehlo.and", [at, make.constant(*_full(fact, 3))], [replace(fact, bound=3.0)])
        fact = make.facts[at]
    make.add("stablehlo.convert", [at], [Fact(Type(fact.type.shape, target), 1 if target == "i1" else fact.bound)])
    return True


def _full(fact: Fact, value: int) -> tuple[str, str, tuple[int, ...]]:
    return fact.type.element, literal(fact.type.element, value), fact.type.shape


def complex_parts(make: Maker) -> bool:
    at = make.pick(lambda f: f.type.element.startswith("complex"))
    if at is None:
        at = make.pick(lambda f: f.type.element == "f32" and f.exact)
        if at is None:
            return False
        other = partner(make, at)
        a, b = make.facts[at], make.facts[other]
        fact = Fact(Type(a.type.shape, "complex<f32>"), a.bound + b.bound, a.exact and b.exact)
        make.add("stablehlo.complex", [at, other], [fact])
        return True
    fact = make.facts[at]
    name = make.rng.choice(("real", "imag"))
    make.add(f"stablehlo.{name}", [at], [replace(fact, type=Type(fact.type.shape, "f32"))])
    return True


# ---------------------------------------------------------------- shape


def broadcast(make: Maker) -> bool:
    at = make.pick(lambda f: len(f.type.shape) < 3)
    if at is None:
        return False
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
        return False
    result = replace(fact, type=Type(tuple(shape), fact.type.element))
    make.add("stablehlo.broadcast_in_dim", [at], [result], f"broadcast_dimensions = {array(dims)}")
    return True


def transpose(make: Maker) -> bool:
    at = make.pick(lambda f: len(f.type.shape) > 1)
    if at is None:
        return False
    fact = make.facts[at]
    order = list(range(len(fact.type.shape)))
    make.rng.shuffle(order)
    shape = tuple(fact.type.shape[d] for d in order)
    make.add(
        "stablehlo.transpose", [at], [replace(fact, type=Type(shape, fact.type.element))],
        f"permutation = {array(order)}",
    )  # fmt: skip
    return True


def reshape(make: Maker) -> bool:
    at = make.pick()
    assert at is not None
    fact, rng = make.facts[at], make.rng
    left = fact.type.count
    shape: list[int] = []
    if left == 0:
        return False
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
    return True


def slice_(make: Maker) -> bool:
    at = make.pick(lambda f: len(f.type.shape) > 0)
    if at is None:
        return False
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
    return True


def pad(make: Maker) -> bool:
    at = make.pick(lambda f: len(f.type.shape) > 0)
    if at is None:
        return False
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
        return False
    value = make.constant(fact.type.element, literal(fact.type.element, 1), bound=1)
    attributes = (
        f"edge_padding_low = {array(low)}, edge_padding_high = {array(high)}, interior_padding = {array(interior)}"
    )
    make.add("stablehlo.pad", [at, value], [replace(fact, type=Type(tuple(shape), fact.type.element))], attributes)
    return True


def concatenate(make: Maker) -> bool:
    at = make.pick(lambda f: len(f.type.shape) > 0)
    if at is None:
        return False
    fact, rng = make.facts[at], make.rng
    along = rng.randrange(len(fact.type.shape))

    def fits(other: Fact) -> bool:
        a, b = list(fact.type.shape), list(other.type.shape)
        if len(a) != len(b) or other.type.element != fact.type.element:
            return False
        a[along] = b[along] = 0
        return a == b

    operands = [at] + [i for _ in range(rng.randint(1, 2)) if (i := make.pick(fits)) is not None]
    facts = [make.facts[i] for i in operands]
    shape = list(fact.type.shape)
    shape[along] = sum(f.type.shape[along] for f in facts)
    if prod(shape) > LARGEST:
        return False
    result = Fact(Type(tuple(shape), fact.type.element), max(f.bound for f in facts), all(f.exact for f in facts))
    make.add("stablehlo.concatenate", operands, [result], f"dimension = {along} : i64")
    return True


def reverse(make: Maker) -> bool:
    at = make.pick(lambda f: len(f.type.shape) > 0)
    if at is None:
        return False
    fact = make.facts[at]
    dims = [d for d in range(len(fact.type.shape)) if make.rng.random() < 0.5]
    make.add("stablehlo.reverse", [at], [fact], f"dimensions = {array(dims)}")
    return True


# ---------------------------------------------------------------- source


def iota(make: Maker) -> bool:
    shape = make.shape(make.rng.randint(1, 3))
    element = make.rng.choice(("i32", "f32", "i64", "ui8", "bf16", "complex<f32>", "f64"))
    fact = Fact(Type(shape, element), max(1, *shape))
    make.add("stablehlo.iota", (), [fact], f"iota_dimension = {make.rng.randrange(len(shape))} : i64")
    return True


def constant(make: Maker) -> bool:
    element, shape = make.rng.choice(("i32", "f32", "i1", "f64")), make.shape()
    if prod(shape) == 0:
        return False
    values = [make.rng.randint(0, 1 if element == "i1" else 3) for _ in range(prod(shape))]
    if make.rng.random() < 0.5:
        make.constant(element, literal(element, values[0]), shape)
        return True

    def nested(dims: tuple[int, ...]) -> str:
        if not dims:
            return literal(element, values.pop())
        return "[" + ", ".join(nested(dims[1:]) for _ in range(dims[0])) + "]"

    make.constant(element, nested(shape), shape)
    return True


def constraint(make: Maker) -> bool:
    at = make.pick()
    assert at is not None
    fact = make.facts[at]
    make.add("stablehlo.custom_call", [at], [fact], 'call_target_name = "Sharding", backend_config = ""')
    make.nodes[-1] = replace(make.nodes[-1], sharding=random_sharding(make.rng, make.mesh, fact.type.shape))
    return True


def barrier(make: Maker) -> bool:
    picked = [i for _ in range(2) if (i := make.pick()) is not None]
    make.add("stablehlo.optimization_barrier", picked, [make.facts[i] for i in picked])
    return True


SIMPLE: dict[Callable[[Maker], bool], int] = {
    unary: 4, rough: 2, binary: 9, compare: 3, select: 3, clamp: 1, convert: 3, complex_parts: 1,
    broadcast: 5, transpose: 4, reshape: 5, slice_: 4, pad: 4, concatenate: 4, reverse: 3,
    iota: 3, constant: 2, constraint: 3, barrier: 1,
}  # fmt: skip


def random_program(seed: int, max_ops: int = 8) -> Program:
    """The program of ``seed``: the same for ever, on every machine."""
    from fuzz_joins import JOINS

    rng = Random(seed)
    make = Maker(rng, rng.choice(MESHES))
    for _ in range(rng.randint(1, 3)):
        fact = Fact(Type(make.shape(), rng.choice(ELEMENTS)))
        if fact.type.element == "i1":
            fact = replace(fact, bound=1)
        make.arguments.append((fact, make.sharding(fact.type.shape, 0.75)))
    emitters = {**SIMPLE, **JOINS}
    wanted, tries = rng.randint(1, max_ops), 0
    while wanted > 0 and tries < 100:
        tries += 1
        emit = rng.choices(list(emitters), list(emitters.values()))[0]
        wanted -= emit(make)
    return _finished(make, seed)


def _finished(make: Maker, seed: int) -> Program:
    """Every value that no op uses is a result, the last four of them."""
    used = {v for node in make.nodes for v in (*node.operands, *node.captured)}
    leaves = [i for i in range(len(make.arguments), len(make.facts)) if i not in used][-4:]
    leaves = leaves or [len(make.facts) - 1]
    facts = make.facts
    results = tuple((i, make.sharding(facts[i].type.shape, 0.4)) for i in leaves)
    return Program(make.mesh.size, tuple(make.arguments), tuple(make.nodes), results, seed, make.rng.random() < 0.8)
