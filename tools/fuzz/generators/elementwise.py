"""Random elementwise ops: one element of each operand makes one element of the result."""

from __future__ import annotations

from dataclasses import replace

from tools.fuzz.maker import ELEMENTS, Emitter, Maker, Unsuited
from tools.stablehlo_text import array, fits, is_number, literal
from tools.values import EXACT, FLOATS, INTEGERS, Fact, Type

SIGNED = ("i32", "i64", "i8")
BITWISE = ("i1", *INTEGERS)
EXACT_UNARY = {
    "negate": (*FLOATS, *SIGNED, "complex<f32>"), "abs": (*FLOATS, *SIGNED), "sign": (*FLOATS, "i32", "i64"),
    "floor": FLOATS, "ceil": FLOATS, "round_nearest_even": FLOATS, "round_nearest_afz": FLOATS,
    "not": BITWISE, "popcnt": INTEGERS, "count_leading_zeros": INTEGERS,
}  # fmt: skip
SMOOTH = ("tanh", "logistic", "sine", "cosine", "exponential", "exponential_minus_one")
# on magnitudes from 1 up, of which they are of the same size or smaller
POSITIVE = {
    "stablehlo": "log log_plus_one rsqrt sqrt cbrt",
    "chlo": "acosh asinh atan bessel_i1e cosh digamma erf erfc lgamma sinh square",
}
# on magnitudes of a half at most
HALVED = {"stablehlo": "tan", "chlo": "acos asin atan atanh erf_inv tan"}
TESTS = "is_inf is_neg_inf is_pos_inf"


def unary(make: Maker) -> None:
    name = make.rng.choice(list(EXACT_UNARY))
    at = make.pick(lambda f: f.type.element in EXACT_UNARY[name] and (f.exact or name in ("negate", "abs")))
    if name == "count_leading_zeros" and not _unsigned(make, at):
        at = make.elementwise("abs", [at])  # of negative constants jaxlib 0.10 counts wrong: 0 becomes -32
    make.elementwise(name, [at], bound=max(1.0, make.facts[at].bound))


def smooth(make: Maker) -> None:
    """Functions that bring no small difference to a large one."""
    at = make.pick(lambda f: f.type.element in ("f32", "f64") and f.bound <= 8)
    name, fact = make.rng.choice(SMOOTH), make.facts[at]
    bound = 3000.0 if name.startswith("exponential") else 1.0
    make.add(f"stablehlo.{name}", [at], [replace(fact, bound=bound, exact=False)])


def function(make: Maker) -> None:
    """Functions with a domain, on exact values that are brought into it."""
    at = make.pick(lambda f: f.type.element in ("f32", "f64") and f.exact)
    half = make.rng.random() < 0.4
    names = [f"{dialect}.{name}" for dialect, row in (HALVED if half else POSITIVE).items() for name in row.split()]
    name = make.rng.choice(names)
    operand = make.clamped(at, -1, 1) if half else positive(make, at)
    fact = make.facts[operand]
    if half:
        other = make.constant(fact.type.element, "0.5", fact.type.shape, bound=1)
        operand = make.elementwise("multiply", [operand, other])
    make.add(name, [operand], [replace(fact, bound=8.0, exact=False)])


def positive(make: Maker, at: int) -> int:
    """Magnitudes from 1 to 3."""
    return make.clamped(make.elementwise("abs", [at]) if not _unsigned(make, at) else at, 1, 3)


def _unsigned(make: Maker, at: int) -> bool:
    return make.facts[at].type.element.startswith("ui")


def special(make: Maker) -> None:
    """Functions of two numbers, and such as only libraries call."""
    at = make.pick(lambda f: f.type.element == "f32" and f.exact)
    kind, rng = make.facts[at].type, make.rng
    first, second = positive(make, at), positive(make, make.partner(at))
    name = rng.choice(
        ("zeta", "polygamma", "next_after", "constant_like", "mulhi", "conj", "_asin_acos_kernel", "tests")
    )
    one = Fact(kind, 8.0, exact=False)
    if name == "zeta":  # its first argument is greater than 1
        other = make.constant("f32", "1.0", kind.shape, bound=1)
        make.add("chlo.zeta", [make.elementwise("add", [first, other], bound=4), second], [one])
    elif name in ("polygamma", "next_after"):
        make.add(f"chlo.{name}", [first, second], [replace(one, bound=32.0)])
    elif name == "constant_like":
        make.add("chlo.constant_like", [at], [Fact(kind, 2.0)], "value = 2.0 : f32")
    elif name == "tests":
        test = rng.choice(TESTS.split())
        make.add(f"chlo.{test}", [at], [Fact(Type(kind.shape, "i1"), 1)])
    elif name == "mulhi":
        whole = make.elementwise("convert", [first], "i32")
        shift = make.constant("i32", "28", kind.shape, bound=28)
        make.add("chlo.mulhi", [whole, make.elementwise("shift_left", [whole, shift])], [Fact(Type(kind.shape, "i32"))])
    else:
        both = make.elementwise("complex", [first, second], "complex<f32>", bound=6)
        make.add(f"chlo.{name}", [both], [Fact(Type(kind.shape, "complex<f32>"), 8.0, name == "conj")])


def binary(make: Maker) -> None:
    at = make.pick()
    other = make.partner(at)
    if make.rng.random() < 0.5:
        at, other = other, at
    a, b = make.facts[at], make.facts[other]
    element = a.type.element
    choices = ["add", "multiply"]
    if not element.startswith("complex"):
        choices += ["maximum", "minimum"]
    if element in BITWISE:
        choices += ["and", "or", "xor"]
    if element != "i1":
        choices += ["subtract"]
    name = make.rng.choice(choices)
    bound = {"add": a.bound + b.bound, "subtract": a.bound + b.bound, "multiply": a.bound * b.bound}.get(
        name, max(a.bound, b.bound)
    )
    if not fits(element, bound):
        raise Unsuited
    make.elementwise(name, [at, other], bound=bound)


def shifts(make: Maker) -> None:
    at = make.pick(lambda f: f.type.element in INTEGERS)
    other = make.clamped(make.partner(at), 0, 2)
    name = make.rng.choice(("shift_left", "shift_right_arithmetic", "shift_right_logical"))
    make.elementwise(name, [at, other])


def quotient(make: Maker) -> None:
    """divide, remainder, power, atan2: the second is never 0, and the first only where that is harmless."""
    at = make.pick(lambda f: f.exact and f.type.element in ("f32", "f64", "i32", "i64", "ui32", "i8"))
    element = make.facts[at].type.element
    name = make.rng.choice(("divide", "remainder", *(("power", "atan2") if element in FLOATS else ())))
    first, second = at, positive(make, make.partner(at))
    if name in ("power", "atan2"):
        first = positive(make, at)
    bound = 27.0 if name == "power" else max(1.0, make.facts[first].bound)
    index = make.elementwise(name, [first, second], bound=bound)
    if name != "remainder" and element in FLOATS:
        make.made[index - len(make.arguments)] = fact = replace(make.facts[index], exact=False)
        make.nodes[-1] = replace(make.nodes[-1], results=(fact,))


def compare(make: Maker) -> None:
    at = make.pick(lambda f: f.exact and f.type.element != "i1")
    kind = make.facts[at].type
    other = make.find(lambda f: f.type == kind and f.exact)
    every = ("EQ", "NE", "LT", "GE", "LE", "GT")
    direction = make.rng.choice(every[:2] if kind.element.startswith("complex") else every)
    result = Fact(Type(kind.shape, "i1"), 1)
    attribute = f"comparison_direction = #stablehlo<comparison_direction {direction}>"
    make.add("stablehlo.compare", [at, at if other is None else other], [result], attribute)


def is_finite(make: Maker) -> None:
    at = make.pick(lambda f: f.type.element in FLOATS)
    make.add("stablehlo.is_finite", [at], [Fact(Type(make.facts[at].type.shape, "i1"), 1)])


def select(make: Maker) -> None:
    at = make.pick()
    other = make.partner(at)
    a, b = make.facts[at], make.facts[other]
    pred = make.find(lambda f: f.type.element == "i1" and f.type.shape in ((), a.type.shape))
    if pred is None:
        pred = make.constant("i1", make.rng.choice(("true", "false")))
    make.add("stablehlo.select", [pred, at, other], [Fact(a.type, max(a.bound, b.bound), a.exact and b.exact)])


def clamp(make: Maker) -> None:
    """Between scalars, or between arrays."""
    at = make.pick(lambda f: is_number(f.type.element))
    fact = make.facts[at]
    if make.rng.random() < 0.5:
        make.clamped(at, 0, 2)
        return
    low, high = make.partner(at), make.partner(at)
    if not (make.facts[low].exact and make.facts[high].exact and fact.exact):
        raise Unsuited
    top = make.elementwise("maximum", [low, high])
    make.add("stablehlo.clamp", [low, at, top], [replace(fact, bound=make.facts[top].bound)])


def convert(make: Maker) -> None:
    target = make.rng.choice(ELEMENTS)
    limit = 60 if target in ("i8", "ui8") else EXACT.get(target, 2**31)
    at = make.pick(lambda f: f.exact and f.bound <= limit and not f.type.element.startswith("complex"))
    if target.startswith("ui") or make.facts[at].type.element == "ui64":
        raise Unsuited
    fact = make.facts[at]
    if fact.type.element in INTEGERS and target in EXACT:  # wrapped integers may be of any size
        three = make.constant(fact.type.element, literal(fact.type.element, 3), fact.type.shape)
        at = make.elementwise("and", [at, three], bound=3)
        fact = make.facts[at]
    make.add("stablehlo.convert", [at], [Fact(Type(fact.type.shape, target), 1 if target == "i1" else fact.bound)])


def reduce_precision(make: Maker) -> None:
    at = make.pick(lambda f: f.type.element == "f32" and f.exact)
    make.add(
        "stablehlo.reduce_precision", [at], [make.facts[at]], "exponent_bits = 5 : i32, mantissa_bits = 4 : i32"
    )  # fmt: skip


def complex_parts(make: Maker) -> None:
    at = make.find(lambda f: f.type.element.startswith("complex"))
    if at is None:
        at = make.pick(lambda f: f.type.element == "f32" and f.exact)
        other = make.partner(at)
        make.elementwise("complex", [at, other], "complex<f32>", make.facts[at].bound + make.facts[other].bound)
        return
    make.elementwise(make.rng.choice(("real", "imag")), [at], "f32")


def bitcast(make: Maker) -> None:
    """Of the same width, of a lesser one (a new last dimension), of a greater one (the last dimension goes)."""
    at = make.pick(lambda f: f.exact and f.type.element in ("i32", "ui32", "f32", "ui8", "i8"))
    kind, rng = make.facts[at].type, make.rng
    if kind.element == "f32":  # zeros of both signs are equal, and their bits are not
        at = make.elementwise("abs", [at])
    if kind.element in ("ui8", "i8"):
        if not kind.shape or kind.shape[-1] != 4:
            raise Unsuited
        target = Type(kind.shape[:-1], "i32")
    else:
        target = rng.choice((Type(kind.shape, "ui32"), Type(kind.shape, "i32"), Type((*kind.shape, 4), "ui8")))
    if target.count > 2048:
        raise Unsuited
    make.add("stablehlo.bitcast_convert", [at], [Fact(target, 2.0**31)])


def map_(make: Maker) -> None:
    at = make.pick(lambda f: f.type.element in ("f32", "i32") and f.bound < 1000)
    other = make.partner(at)
    a, b = make.facts[at], make.facts[other]
    t = f"tensor<{a.type.element}>"
    region = (
        f"{{ ^bb0(%p: {t}, %q: {t}): %n = stablehlo.negate %q : {t} %r = stablehlo.maximum %p, %n : {t} "
        f"stablehlo.return %r : {t} }}"
    )
    result = Fact(a.type, max(a.bound, b.bound), a.exact and b.exact)
    dims = array(range(len(a.type.shape)))
    make.add("stablehlo.map", [at, other], [result], f"dimensions = {dims}", region)


EMITTERS: dict[Emitter, int] = {
    unary: 4, smooth: 2, function: 3, special: 2, binary: 9, shifts: 1, quotient: 2, compare: 3, is_finite: 1,
    select: 3, clamp: 1, convert: 3, reduce_precision: 1, complex_parts: 1, bitcast: 2, map_: 1,
}  # fmt: skip
