"""Random elementwise ops of CHLO that broadcast an operand as they go."""

from __future__ import annotations

from tools.fuzz.generators.elementwise import positive
from tools.fuzz.maker import Emitter, Maker
from tools.stablehlo_text import array, literal
from tools.values import Fact, Type

STRETCHED = {
    "i32": "add and maximum minimum multiply or subtract xor",
    "f32": "add atan2 compare complex divide maximum minimum multiply next_after polygamma power remainder subtract "
    "zeta",
}


def stretched(make: Maker) -> None:
    """CHLO's ops that broadcast a scalar, or dimensions of one element, as they go."""
    at = make.pick(lambda f: f.type.element in STRETCHED and f.exact)
    rng = make.rng
    name = rng.choice([*STRETCHED[make.facts[at].type.element].split(), "select"])
    kind = make.facts[at].type
    first = at if kind.element == "i32" else positive(make, at)
    rank = len(kind.shape)
    shape = rng.choice(((), tuple(n if rng.random() < 0.5 else 1 for n in kind.shape), kind.shape[1:]))
    second = make.constant(kind.element, literal(kind.element, 2), shape)
    pair, exact = (
        [first, second],
        name in ("add", "maximum", "minimum", "multiply", "subtract", *STRETCHED["i32"].split()),
    )
    result = Fact(kind, 50.0, exact)
    attributes = f"broadcast_dimensions = {array(range(rank - len(shape), rank))}" if rng.random() < 0.5 else ""
    if name == "select":
        attributes = ""
        pred = make.constant("i1", rng.choice(("true", "false")), shape, bound=1)
        pair, result = [pred, first, second], Fact(kind, max(3.0, make.facts[first].bound))
    elif name in ("power", "remainder", "divide", "atan2"):
        result = Fact(kind, max(9.0, make.facts[first].bound), exact=False)
    elif name == "zeta":
        pair = [second, first]
        result = Fact(kind, 8.0, exact=False)
    elif name == "complex":
        result = Fact(Type(kind.shape, "complex<f32>"), 6.0)
    elif name == "compare":
        result = Fact(Type(kind.shape, "i1"), 1)
        attributes = "comparison_direction = #chlo<comparison_direction LT>"
    make.add(f"chlo.broadcast_{name}", pair, [result], attributes)


def stretched_bits(make: Maker) -> None:
    at = make.pick(lambda f: f.type.element == "i32")
    name = make.rng.choice(("shift_left", "shift_right_arithmetic", "shift_right_logical"))
    make.add(f"chlo.broadcast_{name}", [at, make.constant("i32", "1")], [make.facts[at]])


EMITTERS: dict[Emitter, int] = {stretched: 2, stretched_bits: 1}
