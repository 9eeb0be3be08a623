"""The laws of arithmetic that proofs take, and where a proof took them.

Sums, products, maxima and minima may be computed in another order: that is assumed of every proof, and is no law here.
A law without a ``risk`` is exact: both sides are the same for all numbers of the type, signed zeros, infinities and NaN
among them. The others are laws of real numbers that floats keep only in part; of integers all are exact. A verdict
lists those that its proof took, with places, and a strict proof takes none of them.

``test/unit/proving/test_laws.py`` checks each law on all numbers of types of 4 and 8 bits.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any

from shardpass.diagnostics import Place
from shardpass.ir.locations import place_of


@dataclass(frozen=True, slots=True)
class Law:
    """An equation of expressions. ``risk``: how floats may violate it; empty if they never do."""

    name: str
    equation: str
    risk: str = ""


NEUTRAL = Law("neutral element", "x + -0 = x, x - 0 = x, x * 1 = x, x / 1 = x, max(x, -inf) = x, min(x, inf) = x")
DIFFERENCE = Law("difference", "a - b = a + -b")
NEGATIVE = Law("double negative", "-(-x) = x")
COMMUTES = Law("order of operands", "a + b = b + a, a * b = b * a, max(a, b) = max(b, a), min(a, b) = min(b, a)")
SAME = Law("one operand", "max(x, x) = x, min(x, x) = x, and(x, x) = x, or(x, x) = x")
DECIDES = Law("deciding operand", "x * 0 = 0, and(x, 0) = 0, or(x, -1) = -1 of integers")
WRITTEN = Law("written clamp", "min(max(x, a), b) = clamp(a, x, b), and max(min(x, b), a) too where a < b")
TURNED = Law("turned comparison", "(a > b) = (b < a), (a >= b) = (b <= a), (a = b) = (b = a)")
WITHIN = Law("common bound", "max(min(a, c), min(b, c)) = min(max(a, b), c), of either, of clamps, and of and and or")
CLAMPED = Law("clamp of a clamp", "clamp(a, clamp(a, x, b), b) = clamp(a, x, b) of integers")
WRAPS = Law("wrap of sums", "(x + a) + b = x + (a + b), (x - a = v) = (x = v + a) of integers, as their type wraps")
ZEROS = Law("repeated zero", "0 + (0 + x) = 0 + x")
BITS = Law("there and back", "bitcast(bitcast(x)) = x")
COUNTED = Law("whole numbers", "float(i) + float(j) = float(i + j), where both are exact")
NARROWED = Law("narrower integers", "convert(a + b) = convert(a) + convert(b), of products too, to a narrower integer")
COUNTS = Law("counts", "(a + b >= 1) = (a >= 1 or b >= 1), (min(a, b) >= c) = (a >= c and b >= c), of truth values too")
PRODUCTS = Law("products of sums", "(a + b) * c = a * c + b * c of integers, as their type wraps")
EXACT = (
    *(NEUTRAL, DIFFERENCE, NEGATIVE, COMMUTES, SAME, DECIDES, WRITTEN, TURNED, WITHIN),
    *(CLAMPED, WRAPS, ZEROS, BITS, COUNTED, NARROWED, COUNTS, PRODUCTS),
)

ZERO = Law("zero", "x + 0 = x", "-0 may become 0")
NEGATED_SUM = Law("negated sum", "-(a + b) = -a - b", "a 0 may have another sign")
FACTOR = Law("common factor", "c * a + c * b = c * (a + b)", "one side may overflow")
DIVISOR = Law("common divisor", "a / c + b / c = (a + b) / c, (a / b) / c = a / (b * c)", "one side may overflow")
CONVERTED = Law("conversion of a sum", "a sum moved past a conversion", "one side may overflow")
CANCELLED = Law("cancellation", "a + b - b = a, a * 0 = 0", "infinite and NaN where b is, and b may absorb a")
EXPONENTIAL = Law("exponents", "exp(a) * exp(b) = exp(a + b), log(a * exp(b)) = log(a) + b", "one side may overflow")
FUNCTIONS = Law("written functions",
                "rsqrt(a) = 1 / sqrt(a), logistic(a) = 1 / (1 + exp(-a)), log_plus_one(a) = log(1 + a)",
                "one side may overflow, or be NaN")  # fmt: skip
SELECTED = Law("selection", "select(p, a, b) = b + p * (a - b), select(a > b, a, b) = max(a, b)",
               "NaN, infinite, or a 0 of another sign")  # fmt: skip
ORDER = Law("negated comparison", "not (a < b) = (b <= a)", "other for NaN")
FIRST = Law("first of the greatest", "argmax(a) = the least position at which a = max(a)", "other for NaN")
QUOTIENT = Law("cancelled divisor", "a / b * b = a, where b is a sum of exponents or of squares and a number",
               "NaN where b is infinite, or rounds to 0")  # fmt: skip
INEXACT = (
    *(ZERO, NEGATED_SUM, FACTOR, DIVISOR, CONVERTED),
    *(CANCELLED, EXPONENTIAL, FUNCTIONS, SELECTED, ORDER, FIRST, QUOTIENT),
)

LAWS = (*EXACT, *INEXACT)


@dataclass(frozen=True, slots=True)
class LawUse:
    """A law used by a proof, with the places of the ops where it was used. ``detail``: the type."""

    law: Law
    detail: str
    places: tuple[Place, ...]

    def __str__(self) -> str:
        count = f"{len(self.places)} places" if len(self.places) > 1 else "1 place"
        shown = ", ".join(map(str, self.places[:SHOWN]))
        rest = ", ..." if len(self.places) > SHOWN else ""
        return f"{self.law.equation}{self.detail} ({count}: {self.law.risk}): {shown}{rest}"

    def json(self) -> dict[str, object]:
        return {
            "law": self.law.name,
            "equation": f"{self.law.equation}{self.detail}",
            "risk": self.law.risk,
            "places": [str(place) for place in self.places],
        }


SHOWN = 8  # places in text


def joined(rows: Iterable[LawUse]) -> tuple[LawUse, ...]:
    """Merge the uses of each law into one row."""
    places: dict[tuple[Law, str], dict[Place, None]] = {}
    for row in rows:
        places.setdefault((row.law, row.detail), {}).update(dict.fromkeys(row.places))
    return tuple(LawUse(law, detail, tuple(where)) for (law, detail), where in places.items())


@dataclass(slots=True)
class Laws:
    """The laws that a proof may use, and those that it used: (law, detail, op), in the order of the walk."""

    strict: bool = False
    uses: list[tuple[Law, str, Any]] = field(default_factory=list)

    def allows(self, law: Law, op: Any, detail: str = "") -> bool:
        """Return whether ``op`` may take ``law``, which is then written down unless it is exact."""
        if not law.risk:
            return True
        if not self.strict:
            self.uses.append((law, detail, op))
        return not self.strict

    def summary(self, counts: Callable[[Any], bool]) -> tuple[LawUse, ...]:
        """List each law used, with the locations of the ops that ``counts`` accepts."""
        rows = sorted(self.uses, key=lambda row: (INEXACT.index(row[0]), row[1]))
        return joined(LawUse(law, detail, (place_of(op.location),)) for law, detail, op in rows if counts(op))
