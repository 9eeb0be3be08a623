"""Random ops whose result depends on no element of an operand, and barriers: sizes, iota, constants, random bits."""

from __future__ import annotations

from dataclasses import replace
from math import prod

from tools.fuzz.maker import SIZES, Emitter, Maker, Unsuited
from tools.stablehlo_text import literal
from tools.values import Fact, Type


def barrier(make: Maker) -> None:
    picked = [i for _ in range(make.rng.randint(1, 3)) if (i := make.find()) is not None]
    make.add("stablehlo.optimization_barrier", picked, [make.facts[i] for i in picked])


def size(make: Maker) -> None:
    at = make.pick(lambda f: len(f.type.shape) > 0)
    shape = make.facts[at].type.shape
    dim = make.rng.randrange(len(shape))
    make.add("stablehlo.get_dimension_size", [at], [Fact(Type((), "i32"), shape[dim])], f"dimension = {dim} : i64")


def iota(make: Maker) -> None:
    shape = make.shape(make.rng.randint(1, 3))
    element = make.rng.choice(("i32", "f32", "i64", "ui8", "bf16", "complex<f32>", "f64"))
    fact = Fact(Type(shape, element), max(1, *shape))
    make.add("stablehlo.iota", (), [fact], f"iota_dimension = {make.rng.randrange(len(shape))} : i64")


def constant(make: Maker) -> None:
    element, shape = make.rng.choice(("i32", "f32", "i1", "f64")), make.shape()
    if prod(shape) == 0:
        raise Unsuited
    values = [make.rng.randint(0, 1 if element == "i1" else 3) for _ in range(prod(shape))]
    dialect = "chlo" if make.rng.random() < 0.1 else "stablehlo"

    def nested(dims: tuple[int, ...]) -> str:
        if not dims:
            return literal(element, values.pop())
        return "[" + ", ".join(nested(dims[1:]) for _ in range(dims[0])) + "]"

    text = literal(element, values[0]) if make.rng.random() < 0.5 else nested(shape)
    make.constant(element, text, shape)
    make.nodes[-1] = replace(make.nodes[-1], name=f"{dialect}.constant")


def random_bits(make: Maker) -> None:
    """The bits must be those of one device."""
    shape = make.shape(make.rng.randint(1, 2))
    if prod(shape) == 0:
        raise Unsuited
    state = make.constant("ui64", f"[{make.rng.randint(0, 99)}, 7]", (2,))
    results = [Fact(Type((2,), "ui64")), Fact(Type(shape, make.rng.choice(("ui32", "ui8", "ui64"))))]
    algorithm = make.rng.choice(("THREE_FRY", "PHILOX", "DEFAULT"))
    attributes = f"rng_algorithm = #stablehlo<rng_algorithm {algorithm}>"
    make.add("stablehlo.rng_bit_generator", [state], results, attributes)


def random_numbers(make: Maker) -> None:
    """rng is no function; but what it draws between 2 and 3 is 2, and all devices draw the same."""
    shape = make.shape(make.rng.randint(1, 3))
    if prod(shape) == 0:
        raise Unsuited
    low, high = (make.constant("f32", n) for n in ("2.0", "2.9375"))
    sizes = make.constant("i64", str(list(shape)), (len(shape),), bound=max(SIZES))
    attributes = "rng_distribution = #stablehlo<rng_distribution UNIFORM>"
    unknown = Fact(Type(shape, "f32"), float("inf"), exact=False)
    drawn = make.add("stablehlo.rng", [low, high, sizes], [unknown], attributes)
    make.hidden.add(drawn)
    make.add("stablehlo.floor", [drawn], [Fact(unknown.type, 2.0)])


EMITTERS: dict[Emitter, int] = {
    barrier: 1,
    size: 1,
    iota: 3,
    constant: 2,
    random_bits: 1,
    random_numbers: 1,
}
