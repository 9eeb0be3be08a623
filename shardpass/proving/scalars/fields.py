"""Values of terms in finite fields, by which terms are compared as functions of real numbers and of integers.

A term is evaluated with a random number in the place of each function that no law describes: an element of an
argument, or another function of the values of its operands. Sums, products and constants are those of a field of
p > 2**127 numbers, so two terms that a law of arithmetic makes equal have one value, and two that are different
polynomials have one with a probability below 2**-90. The random numbers are hashes, so that a proof is the same in
every run.

- exp is a power g**x, where g has order q modulo p, and q is the next prime of ``PRIMES``: exp(a) * exp(b) is then
  exp(a + b). So each value is a tuple of numbers, one for each prime that is needed. Example: exp(exp(x)) needs three.
- 1 / (a * b) is (1 / a) * (1 / b), and c / c is no 1: 0 / 0 is none.
- log(a) and 1 / a are those of a without its scale: log(a) = u + log(a * exp(-u)), where u is the mean exponent of
  what is added up in a. So the maximum that a softmax subtracts may be that of any part.
- select(p, a, b) is b + p * (a - b), where p is 0 or 1, and max(a, b) is select(a > b, a, b).
- A choice by an integer is a sum of its steps, [i >= 4] * (a - b) + b; of counts, [x + y >= 1] is [x >= 1] or [y >= 1].
- Integers are those of a ring: a sum of u8 is that of i32, converted to u8.
- What may be infinite, as a choice of -inf, is in no sum, product or difference: it is a function like any other.

Each law that floats keep only in part can be turned off. Those that a proof lists are those without which two of its
terms differ.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import reduce
from hashlib import shake_128
from itertools import pairwise
from typing import Any

import numpy as np

from shardpass.element_types import element_type
from shardpass.proving.relations import laws as law_table
from shardpass.proving.relations.laws import Law
from shardpass.proving.rules.integers import is_integer, limits
from shardpass.proving.scalars.ranks import FIRST
from shardpass.proving.scalars.rows import CHOICE, FUNCTION, at_value, segments, shift, shift_of
from shardpass.proving.scalars.table import TERM, Order, Ranked, Scalars

# each but the last is k * q + 1 for the next prime q
PRIMES = (
    108928469039795453416187772334198185704968488161,
    680802931498721583851173577088738660656053051,
    4538686209991477225674490513924924404373687,
    19396094914493492417412352623610788052879,
    2**127 - 1,
)
WIDE = 2**70  # beyond all integers of a program
_DIGITS = {"f64": 53, "f32": 24, "f16": 11, "bf16": 8}  # of the integers that a float holds exactly
_NAMED = {"exponential", "log", "log_plus_one", "exponential_minus_one", "logistic", "rsqrt", "sqrt", "divide", "abs"}

Numbers = tuple[int, ...]  # modulo each of the primes


@dataclass(frozen=True, slots=True)
class Form:
    """The value of a term. ``loose``: it may be infinite; ``least``: it is -inf.

    ``mean``, ``count``, ``scale``: the mean exponent of what is added up, how many terms these are, and what they are
    where all atoms are 1. ``positive``: it is not less than 0. ``power``: exp of what has a logarithm in it.
    ``zeroed``: 0 was added, so that it is not -0; only where that counts.
    """

    at: Numbers
    loose: bool = False
    least: bool = False
    mean: Numbers | None = None
    count: int = 1
    scale: Numbers | None = None
    positive: bool = False
    power: Form | None = None
    zeroed: bool = False

    @property
    def mark(self) -> int:
        """The value as it is compared, and as functions take it."""
        return 2 * self.at[0] + self.zeroed


class Fields:
    """The values of the terms of ``table``, without the laws ``off``."""

    def __init__(self, table: Scalars, off: Iterable[Law] = ()) -> None:
        self.table, self.off = table, frozenset(off)
        some = any(isinstance(key, tuple) and _name(key) in ("exponential", "logistic", "exponential_minus_one")
                   for key, _ in table.terms)  # fmt: skip
        self.primes = PRIMES if some else PRIMES[:1]
        self.one, self.zero = tuple(1 for _ in self.primes), tuple(0 for _ in self.primes)
        self._forms: dict[int, Form] = {}
        self._residues: dict[tuple[int, int], Numbers] = {}
        self._bounds: dict[int, tuple[int, int]] = {}
        self._conjuncts: dict[tuple[int, int, bool], frozenset[Numbers]] = {}
        self._minus = self.number(-1 if self.has(law_table.CANCELLED) else 1)  # so that nothing cancels
        self._roots = [pow(3, (p - 1) // q, p) for p, q in pairwise(self.primes)]

    def has(self, law: Law) -> bool:
        return law not in self.off

    # ---------------------------------------------------------------- numbers

    def hashed(self, *name: object) -> Numbers:
        """Return random numbers for the function ``name``."""
        data = shake_128(repr(name).encode()).digest(32 * len(self.primes))
        return tuple(int.from_bytes(data[32 * k : 32 * k + 32], "big") % p for k, p in enumerate(self.primes))

    def number(self, numerator: int, denominator: int = 1) -> Numbers:
        if denominator == 1:
            return tuple(numerator % p for p in self.primes)
        return tuple(numerator * pow(denominator, -1, p) % p for p in self.primes)

    def add(self, values: Iterable[Numbers]) -> Numbers:
        return tuple(
            sum(column) % p for column, p in zip(zip(self.zero, *values, strict=True), self.primes, strict=True)
        )

    def times(self, x: Numbers, y: Numbers) -> Numbers:
        return tuple(a * b % p for a, b, p in zip(x, y, self.primes, strict=True))

    def less(self, x: Numbers, y: Numbers) -> Numbers:
        return tuple((a - b) % p for a, b, p in zip(x, y, self.primes, strict=True))

    def opposite(self, x: Numbers) -> Numbers:
        return self.times(x, self._minus)

    def power(self, x: Numbers) -> Numbers:
        """Return exp(x)."""
        if x == self.zero:
            return self.one
        powers = [pow(g, e, p) for g, e, p in zip(self._roots, x[1:], self.primes, strict=False)]
        self.table.spend(16 * TERM)
        return (*powers, self.hashed("exponential", x[0])[-1])

    def inverse(self, x: Numbers) -> Numbers:
        """Return 1 / x of a number that is a constant."""
        return tuple(pow(a, -1, p) for a, p in zip(x, self.primes, strict=True))

    # ---------------------------------------------------------------- terms

    def value(self, number: int) -> int:
        """Return the value of a term, by which it is compared."""
        return self.form(number).mark

    def form(self, number: int) -> Form:
        if number not in self._forms:
            for n in sorted(self._below(number)):  # operands have lesser numbers than what is made of them
                self.table.spend(2 * TERM + 4 * len(self.table.terms[n][1]) * len(self.primes))
                self._forms[n] = self._made(n)
        return self._forms[number]

    def _below(self, number: int) -> set[int]:
        """Return the terms without a value of which ``number`` is made."""
        todo, seen = [number], {number}
        while todo:
            key, operands = self.table.terms[at := todo.pop()]
            chosen = (int(key[1]),) if self.table.head_of(at) in (CHOICE, FUNCTION) else ()
            new = {n for n in (*chosen, *operands) if n not in seen and n not in self._forms}
            seen |= new
            todo += new
        return seen

    def _made(self, number: int) -> Form:
        table = self.table
        key, operands = table.terms[number]
        if table.is_known(number):
            return Form(self.number(table.number(number)))
        if table.head_of(number) == FUNCTION or (table.head_of(number) == CHOICE and self._is_integers(number)):
            return Form(self._function(number))
        if table.head_of(number) == CHOICE:
            return self._choice(number)
        if not isinstance(key, tuple):
            return self._atom(key, operands)
        if key[0] == "constant":
            return self._constant(key)
        element, name = _element(key), _name(key)
        if name in ("add", "multiply", "negated", "convert", "compare", "minimum", "maximum", "and", "or", "xor",
                    "not") and is_integer(element):  # fmt: skip
            if name == "add" and self._fits(operands, element):
                return self._added([self._forms[n] for n in operands])
            return Form(self._integer(number, name, element))
        forms = [self._forms[n] for n in operands]
        if key[0] == "product":
            return self._scaled(self._product("multiply", element, operands, forms), self.hashed(key))
        rules = {"add": self._sum, "multiply": self._product, "maximum": self._extreme, "minimum": self._extreme,
                 "negated": self._negated}  # fmt: skip
        if name in rules and len(key) == 2:
            return rules[name](name, element, operands, forms)
        if name == "convert":
            return self._converted(key, operands, forms)
        if name in _NAMED and not is_integer(element) and "complex" not in str(key):
            made = self._named(key, operands, forms)
            if made is not None:
                return made
        return self._atom(key, operands)

    def _atom(self, key: object, operands: Sequence[int]) -> Form:
        forms = [self._forms[n] for n in operands]
        return Form(self.hashed(key, *(f.mark for f in forms)), any(f.loose for f in forms))

    def _set(self, name: str, element: str, forms: Sequence[Form], loose: bool = True) -> Form:
        """Return a function of operands whose order does not matter."""
        return Form(self.hashed(name, element, *sorted(f.mark for f in forms)), loose)

    def _constant(self, key: tuple[Any, ...]) -> Form:
        _, element, bits = key
        array = np.frombuffer(bits, element_type(element).dtype)
        if array.dtype.kind == "c":
            return Form(self.hashed(key)) if array[0] else Form(self.zero, count=0, zeroed=not self.has(law_table.ZERO))
        value = float(array[0])
        if not np.isfinite(value):
            return Form(self.hashed(key), True, value < 0)
        if not value:
            return Form(self.zero, count=0, positive=True, zeroed=not (np.signbit(value) or self.has(law_table.ZERO)))
        at = self.number(*_simplest(np.abs(array)))
        return Form(self.opposite(at) if value < 0 else at, scale=at, positive=value > 0)

    def _is_constant(self, number: int) -> bool:
        key = self.table.terms[number][0]
        return isinstance(key, tuple) and key[0] == "constant"

    # ---------------------------------------------------------------- real numbers

    def _sum(self, name: str, element: str, operands: Sequence[int], forms: Sequence[Form]) -> Form:
        zeroed = any(f.zeroed for f in forms)
        forms = [f for f in self._rounded(element, operands, forms) if f.at != self.zero] or forms[:1]
        if len(forms) == 1:
            return replace(forms[0], zeroed=zeroed)
        if sum(f.least for f in forms) == sum(f.loose for f in forms) == 1 and self.has(law_table.CANCELLED):
            return next(f for f in forms if f.least)  # -inf + x
        if any(f.loose for f in forms):
            return self._set(name, element, forms)
        return replace(self._added(forms), zeroed=zeroed)

    def _rounded(self, element: str, operands: Sequence[int], forms: Sequence[Form]) -> Sequence[Form]:
        """Return the summands, with one function in the place of constants whose sum may be rounded."""
        known = [self._whole(n) for n in operands]
        values = [Fraction(v) for v in known if v]
        if len(values) < 2 or sum(map(abs, values)) * max(v.denominator for v in values) <= 2 ** _DIGITS.get(
            element, 0
        ):
            return forms
        apart = [f for v, f in zip(known, forms, strict=True) if v]
        return [*(f for v, f in zip(known, forms, strict=True) if not v), self._set("constants", element, apart, False)]

    def _added(self, forms: Sequence[Form]) -> Form:
        count = sum(f.count for f in forms)
        scale = self.add(f.scale or self.number(f.count) for f in forms)
        mean = None
        if any(f.mean for f in forms) and all((count % p) for p in self.primes):
            total = self.add(self.times(f.mean, self.number(f.count)) for f in forms if f.mean)
            mean = self.times(total, self.number(1, count))
        positive, power = all(f.positive for f in forms), None
        if any(f.power for f in forms):
            power = reduce(self._times, [self._exponential(f) for f in forms])
        return Form(
            self.add(f.at for f in forms),
            mean=mean,
            count=count,
            scale=scale,
            positive=positive,
            power=power,
            zeroed=any(f.zeroed for f in forms),
        )

    def _product(self, name: str, element: str, operands: Sequence[int], forms: Sequence[Form]) -> Form:
        some = any(f.loose for f in forms) or not self.has(law_table.FACTOR)
        zero = any(f.at == self.zero for f in forms) and not self.has(law_table.CANCELLED)
        if some or zero:
            return self._set(name, element, forms, any(f.loose for f in forms))
        result = forms[0]
        for form in forms[1:]:
            result = self._times(result, form)
        return result

    def _times(self, x: Form, y: Form) -> Form:
        mean = self.add(m for m in (x.mean, y.mean) if m) if x.mean or y.mean else None
        scale = self.times(x.scale or self.one, y.scale or self.one) if x.scale or y.scale else None
        positive = (x.positive and y.positive) or x.at == y.at
        return Form(
            self.times(x.at, y.at),
            mean=mean,
            count=x.count * y.count,
            scale=scale,
            positive=positive,
            zeroed=x.zeroed or y.zeroed,
        )

    def _scaled(self, form: Form, by: Numbers) -> Form:
        return form if form.loose else replace(form, at=self.times(form.at, by), positive=False, power=None)

    def _negated(self, name: str, element: str, operands: Sequence[int], forms: Sequence[Form]) -> Form:
        (form,) = forms
        if form.loose or not self.has(law_table.NEGATED_SUM):
            return self._atom((name, element), operands)
        return self._scaled(form, self._minus)

    def _extreme(self, name: str, element: str, operands: Sequence[int], forms: Sequence[Form]) -> Form:
        loose = any(f.loose for f in forms)
        if loose or len(forms) != 2 or not self.has(law_table.SELECTED):
            if name == "maximum" or not self.has(law_table.NEGATED_SUM) or loose:
                return self._set(name, element, forms, loose)
            greatest = self._set("maximum", element, [Form(self.opposite(f.at)) for f in forms], False)
            return Form(self.opposite(greatest.at))
        low, high = sorted(forms, key=lambda f: f.at)
        step = self.times(self._ordered(low.at, high.at, True), self.less(high.at, low.at))
        return Form(self.add((low.at, step)) if name == "maximum" else self.less(high.at, step))

    def _converted(self, key: tuple[Any, ...], operands: Sequence[int], forms: Sequence[Form]) -> Form:
        _, new, old = key
        (form,), (operand,) = forms, operands
        if is_integer(old) or old == "i1":
            low, high = self.bounds(operand)
            exact = 2 ** _DIGITS.get(new, 0)
            return form if -exact <= low and high <= exact else self._atom(key, operands)
        if form.loose or not self.has(law_table.CONVERTED) or is_integer(new) or form.at == self.zero:
            return form if form.at == self.zero and self.has(law_table.ZERO) else self._atom(key, operands)
        return self._scaled(form, self.hashed("convert", new, old))

    def _named(self, key: tuple[Any, ...], operands: Sequence[int], forms: Sequence[Form]) -> Form | None:
        name, form = _name(key), forms[0]
        if name == "exponential" and form.least and self.has(law_table.EXPONENTIAL):
            return Form(self.zero, count=0)
        if any(f.loose for f in forms):
            return None
        if name == "exponential":
            return self._exponential(form) if self.has(law_table.EXPONENTIAL) else None
        if name == "divide":
            if not self.has(law_table.DIVISOR):
                return None
            inverse = self._inverse_of(operands[1])
            return replace(self._atom(key, operands), loose=True) if inverse is None else self._times(form, inverse)
        if name == "log":
            return self._logarithm(form) if self.has(law_table.EXPONENTIAL) else None
        if name == "sqrt" or not self.has(law_table.FUNCTIONS):
            return None
        if name not in ("rsqrt", "abs") and not self.has(law_table.EXPONENTIAL):
            return None
        if name == "rsqrt":
            return self._inverse(Form(self.hashed(("stablehlo.sqrt", *key[1:]), form.mark)))
        if name == "abs":
            return self._absolute(form)
        one = Form(self.one, scale=self.one, positive=True)
        if name == "log_plus_one":
            return self._logarithm(self._added([one, form]))
        if name == "exponential_minus_one":
            return self._added([self._exponential(form), Form(self.opposite(self.one))])
        return self._inverse(self._added([one, self._exponential(self._scaled(form, self._minus))]))

    def _absolute(self, form: Form) -> Form | None:
        if form.positive or not self.has(law_table.SELECTED):
            return form if form.positive else None
        sign = self.less(self.times(self.number(2), self._ordered(self.zero, form.at, True)), self.one)
        return Form(self.times(form.at, sign))

    def _exponential(self, form: Form) -> Form:
        return form.power or Form(self.power(form.at), mean=form.at, scale=self.one, positive=True)

    def _logarithm(self, form: Form) -> Form:
        mean = form.mean or self.zero
        rest = self.times(form.at, self.power(self.less(self.zero, mean)))
        return Form(self.add((mean, self.hashed("log", rest[0]))), power=form)

    def _inverse_of(self, number: int) -> Form | None:
        """Return 1 / x of a term: of a product that of its factors; None where x is 0 or may be infinite."""
        key, operands = self.table.terms[number]
        form = self._forms[number]
        if form.at == self.zero or form.loose:
            return None
        if self._is_constant(number):
            return Form(self.inverse(form.at), scale=self.inverse(form.at))
        if isinstance(key, tuple) and len(key) == 2 and key[0] == "multiply":
            result: Form | None = Form(self.one)
            for operand in operands:
                other = self._inverse_of(operand)
                result = None if result is None or other is None else self._times(result, other)
            return result
        return self._inverse(form)

    def _inverse(self, form: Form) -> Form:
        scale = form.scale or self.number(form.count)
        if any(s == 0 for s in scale):
            scale = self.one
        back = self.inverse(scale)
        rest, mean = self.times(form.at, back), None
        if form.mean is not None:
            mean = self.less(self.zero, form.mean)
            power = self.power(mean)
            rest, back = self.times(rest, power), self.times(back, power)
        inverse = self.one if rest == self.one else self.hashed("inverse", rest[0])
        return Form(self.times(inverse, back), mean=mean, scale=self.inverse(scale), positive=form.positive)

    def _choice(self, number: int) -> Form:
        base, rows = segments(self.table, number)
        forms = [self._forms[child] for _, child in rows]
        if any(f.loose for f in forms) or not self.has(law_table.SELECTED):
            key = ("choice", self._forms[base].at[0], tuple(start for start, _ in rows))
            return Form(self.hashed(key, *(f.mark for f in forms)), any(f.loose for f in forms))
        at = forms[0].at
        for (start, _), form, before in zip(rows[1:], forms[1:], forms, strict=False):
            step = self.less(form.at, before.at)
            at = self.add((at, self.times(self._step(base, start, step), step)))
        whole = self._added(forms)
        return replace(whole, at=at, count=max(whole.count, 1), power=None)

    def _step(self, base: int, start: int, by: Numbers) -> Numbers:
        """Return [base >= start]; of a comparison of x and y, where ``by`` is a multiple of x - y, that of x < y."""
        key, operands = self.table.terms[base]
        if isinstance(key, tuple) and key[0] == "compare" and key[1] in ("LT", "LE") and not is_integer(key[3]):
            x, y = (self._forms[n].at for n in operands)
            apart = self.less(x, y)
            if any(self.times(apart, self.number(k)) == by for k in (1, -1, 2, -2)):
                return self._compared(base, True)
        return self.at_least(base, start)

    # ---------------------------------------------------------------- truth values

    def _ordered(self, low: Numbers, high: Numbers, strict: bool) -> Numbers:
        return self.hashed("LT" if strict else "LE", low[0], high[0])

    def _compared(self, number: int, tied: bool = False) -> Numbers:
        """Return a comparison of floats; with ``tied``, it may be either where they are equal."""
        key, operands = self.table.terms[number]
        direction = key[1]
        counted = self._counted(direction, *operands)
        if counted is not None:
            return counted
        x, y = (self._forms[n].at for n in operands)
        if direction in ("EQ", "NE"):
            same = self.hashed("EQ", key[2:], *sorted((x[0], y[0])))
            return same if direction == "EQ" else self.less(self.one, same)
        strict = direction == "LT"
        if not self.has(law_table.ORDER) or key[2]:  # in the total order, -0 is less than 0
            return self.hashed(key, x[0], y[0])
        if x <= y:
            return self._ordered(x, y, strict or tied)
        return self.less(self.one, self._ordered(y, x, not strict or tied))

    def _counted(self, direction: str, x: int, y: int) -> Numbers | None:
        """Compare a count that is a float with a constant; None for other floats."""
        first, second = self._whole(x), self._whole(y)
        if (first is None) == (second is None):
            return None
        (other, constant) = (y, first) if first is not None else (x, second)
        assert constant is not None
        low, high = self.bounds(other)
        if (low, high) == (-WIDE, WIDE):
            return None
        ceiling, above = int(np.ceil(constant)), int(np.floor(constant)) + 1
        if direction in ("EQ", "NE"):
            same = self.less(self.at_least(other, ceiling), self.at_least(other, above))
            return same if direction == "EQ" else self.less(self.one, same)
        if other == y:  # constant < count
            return self.at_least(other, above if direction == "LT" else ceiling)
        return self.less(self.one, self.at_least(other, ceiling if direction == "LT" else above))

    def _whole(self, number: int) -> float | None:
        key = self.table.terms[number][0]
        if not isinstance(key, tuple) or key[0] != "constant" or key[1].startswith("complex"):
            return None
        value = float(np.frombuffer(key[2], element_type(key[1]).dtype)[0])
        return value if np.isfinite(value) and abs(value) < WIDE else None

    def at_least(self, number: int, least: int) -> Numbers:
        """Return whether an integer, or a float that is one, is ``least`` or more."""
        return self._all(self._conjunction(number, least, True))

    def _all(self, parts: frozenset[Numbers]) -> Numbers:
        if self.zero in parts:
            return self.zero
        if len(parts) < 2:
            return next(iter(parts), self.one)
        return self.hashed("and", *sorted(part[0] for part in parts))

    def _conjunction(self, number: int, least: int, positive: bool) -> frozenset[Numbers]:
        """Return truth values that are all true where [number >= least] is, or where it is not."""
        place = number, least, positive
        if place not in self._conjuncts:
            self.table.spend(TERM)
            self._conjuncts[place] = self._parts(number, least, positive)
        return self._conjuncts[place]

    def _parts(self, number: int, least: int, positive: bool) -> frozenset[Numbers]:
        low, high = self.bounds(number)
        if least <= low or least > high:
            return frozenset() if (least <= low) == positive else frozenset([self.zero])
        word, inner = self._split(number, least)
        if not isinstance(word, str):
            return frozenset([word if positive else self.less(self.one, word)])
        if word == "not":
            return self._conjunction(*inner[0], not positive)
        if (word == "and") == positive:
            return frozenset[Numbers]().union(*(self._conjunction(n, k, positive) for n, k in inner))
        other = frozenset[Numbers]().union(*(self._conjunction(n, k, not positive) for n, k in inner))
        return frozenset([self.less(self.one, self._all(other))])

    def _split(self, number: int, least: int) -> tuple[str | Numbers, list[tuple[int, int]]]:
        """Return [number >= least] as ("and", "or" or "not", [(number, least)]), or the value of an atom."""
        table = self.table
        key, operands = table.terms[number]
        if table.head_of(number) in (CHOICE, FUNCTION):
            return self._table(number, least)
        name = _name(key) if isinstance(key, tuple) else ""
        element = _element(key) if isinstance(key, tuple) else ""
        if name == "compare" and not is_integer(key[3]):
            return self._compared(number), []
        if name == "convert" and is_integer(str(key[2])) and not is_integer(str(key[1])):
            return "and", [(operands[0], least)]
        if name in ("minimum", "maximum") or (name in ("and", "or") and element == "i1"):
            return "and" if name in ("minimum", "and") else "or", [(n, least) for n in operands]
        if name == "not" and element == "i1":
            return "not", [(operands[0], 1)]
        if name == "add" and self._fits(operands, element):
            bounds = [self.bounds(n) for n in operands]
            if least == sum(low for low, _ in bounds) + 1:
                return "or", [(n, low + 1) for n, (low, _) in zip(operands, bounds, strict=True)]
            if least == sum(high for _, high in bounds):
                return "and", [(n, high) for n, (_, high) in zip(operands, bounds, strict=True)]
        value = self._forms[number].at
        return value if self.bounds(number) == (0, 1) else self.hashed(">=", value[0], least), []

    def _table(self, number: int, least: int) -> tuple[str | Numbers, list[tuple[int, int]]]:
        """Return [number >= least] by the integer that chooses."""
        base, rows = segments(self.table, number)
        high = self.table.ranges[base][1]
        cuts: list[tuple[int, bool]] = []
        for (start, child), end in zip(rows, [*(s for s, _ in rows[1:]), high], strict=True):
            by = shift_of(self.table, child)
            if by is None:
                cuts.append((start, self.table.number(child) >= least))
                continue
            first = max(start, least - by)
            cuts += [(start, False)] * (start < first) + [(first, True)] * (first < end)
        kept = [cut for k, cut in enumerate(cuts) if k == 0 or cut[1] != cuts[k - 1][1]]
        if len(kept) == 2:
            return ("and" if kept[1][1] else "not"), [(base, kept[1][0])]
        at = self.one if kept[0][1] else self.zero
        for start, on in kept[1:]:
            step = self.at_least(base, start)
            at = self.add((at, step)) if on else self.less(at, step)
        return at, []

    def bounds(self, number: int) -> tuple[int, int]:
        """Return the least and the greatest number that an integer, or a float that is one, may be."""
        result = self._bounds.get(number)
        if result is None:
            result = self._bounds[number] = self._limits(number)
        return result

    def _limits(self, number: int) -> tuple[int, int]:
        table = self.table
        key, operands = table.terms[number]
        if table.is_known(number):
            return (table.number(number),) * 2
        if table.head_of(number) in (CHOICE, FUNCTION) and self._is_integers(number):
            base, rows = segments(table, number)
            ends = [*(s for s, _ in rows[1:]), table.ranges[base][1]]
            spans = [(start + by, end - 1 + by) if (by := shift_of(table, c)) is not None else self.bounds(c)
                     for (start, c), end in zip(rows, ends, strict=True)]  # fmt: skip
            return min(low for low, _ in spans), max(high for _, high in spans)
        if number in table.ranges:
            low, high = table.ranges[number]
            most = (low, high - 1)
        else:
            most = (-WIDE, WIDE)
        if not isinstance(key, tuple):
            return most
        name, element = _name(key), _element(key)
        if key[0] == "compare" or element == "i1":
            return 0, 1
        if key[0] == "constant":
            value = self._whole(number)
            return (int(value),) * 2 if value is not None and value == int(value) else most
        if name == "convert" and is_integer(str(key[2])) and not is_integer(element):
            low, high = self.bounds(operands[0])
            exact = 2 ** _DIGITS.get(element, 0)
            return (low, high) if -exact <= low and high <= exact else most
        if is_integer(element) and most == (-WIDE, WIDE):
            most = limits(element)
        if name in ("add", "minimum", "maximum") and len(key) == 2:
            rows = [self.bounds(n) for n in operands]
            lows, highs = [r[0] for r in rows], [r[1] for r in rows]
            low, high = {"add": (sum(lows), sum(highs)), "minimum": (min(lows), min(highs))}.get(
                name, (max(lows), max(highs))
            )
            exact = 2 ** _DIGITS.get(element, 0)
            room = limits(element) if is_integer(element) else (-exact, exact)
            return (low, high) if room[0] <= low and high <= room[1] else most
        return most

    def _fits(self, operands: Sequence[int], element: str) -> bool:
        """Return whether a sum does not wrap, or round."""
        rows = [self.bounds(n) for n in operands]
        exact = 2 ** _DIGITS.get(element, 0)
        low, high = limits(element) if is_integer(element) else (-exact, exact)
        return low <= sum(r[0] for r in rows) and sum(r[1] for r in rows) <= high

    # ---------------------------------------------------------------- integers

    def _is_integers(self, number: int) -> bool:
        _, rows = segments(self.table, number)
        return all(self.table.is_known(c) or shift_of(self.table, c) is not None for _, c in rows)

    def _function(self, number: int) -> Numbers:
        """Return the value of a table from an integer to integers."""
        base, rows = segments(self.table, number)
        at = self.zero
        before = self.zero
        for k, (start, child) in enumerate(rows):
            by = shift_of(self.table, child)
            own = self._forms[child].at if by is None else self.add((self._forms[base].at, self.number(by)))
            step = self.less(own, before)
            at = self.add((at, self.times(self.at_least(base, start), step) if k else step))
            before = own
        return at

    def _integer(self, number: int, name: str, element: str) -> Numbers:
        key, operands = self.table.terms[number]
        if name == "compare":
            return self._compared(number) if not is_integer(key[3]) else self._alike(key, operands)
        if name == "convert" and not is_integer(str(key[2])):
            return self.hashed(key, self._forms[operands[0]].at[0])
        if element == "i1":
            return self._truth(number, name, operands)
        if name in ("minimum", "maximum"):
            if all(self.bounds(n) == (0, 1) for n in operands):
                return self.at_least(number, 1)
            if name == "minimum" and (label := self._first(operands)) is not None:
                return label
            return self._set(name, element, [self._forms[n] for n in operands]).at
        if name in ("and", "or", "xor", "not"):
            return self._set(name, element, [self._forms[n] for n in operands]).at
        return self.hashed("wraps", element, self._residue(number, _width(element))[0])

    def _first(self, operands: Sequence[int]) -> Numbers | None:
        """Return argmax as it is computed of parts: the least label of the parts that have the greatest element.

        Each operand is select(part = greatest, label of the part, a number that is greater than all labels).
        """
        table, entries, greatest, last = self.table, list[tuple[int, int]](), set[int](), WIDE
        orders = set[Order]()
        for operand in operands:
            parts = self._label_of_part(operand)
            if parts is None:
                return None
            own, labels, other, beyond = parts
            greatest.add(other)
            orders.add(own.order)
            last = min(last, beyond)
            entries += zip(labels, own.values, strict=True)
        order, known = next(iter(orders)), sorted(table.number(label) for label, _ in entries)
        if len(orders) > 1 or len(greatest) > 1 or last < known[-1] or not self.has(law_table.FIRST):
            return None
        row = tuple(value for _, value in sorted(entries, key=lambda entry: table.number(entry[0])))
        key = FIRST[order.op[0]], order.element
        if len(set(known)) < len(known) or table.terms[greatest.pop()] != (key, tuple(sorted(set(row)))):
            return None
        pairs = [
            (self._forms[value].mark, 2 * (label % self.primes[0])) for value, label in zip(row, known, strict=True)
        ]
        return self.hashed(("ranked", order, 0), *(n for pair in pairs for n in pair))

    def _label_of_part(self, number: int) -> tuple[Ranked, Sequence[int], int, int] | None:
        """Return the part, the label of each of its elements, the greatest element of all, and the other number."""
        table = self.table
        if table.head_of(number) != CHOICE:
            return None
        base, rows = segments(table, number)
        (key, sides), children = table.terms[base], [child for _, child in rows]
        if (
            len(rows) != 2
            or not isinstance(key, tuple)
            or key[:2] != ("compare", "EQ")
            or not table.is_known(children[0])
        ):
            return None
        label = children[1]
        if table.is_known(label):  # a part of one element
            for part, other in (sides, sides[::-1]):
                for name, op in FIRST.items():
                    if table.terms[other][0] == (op, key[3]) and part in table.terms[other][1]:
                        one = Ranked(Order(str(key[3]), (name, "first")), 0, (part,), (label,))
                        return one, [label], other, table.number(children[0])
        chosen = (
            segments(table, label) if table.head_of(label) in (CHOICE, FUNCTION) else (label, [(0, shift(table, 0))])
        )
        own = table.ranked.get(chosen[0])
        if own is None or own.order.op[0] not in FIRST or not all(map(table.is_known, own.labels)):
            return None
        labels = [at_value(table, chosen[1], table.number(label)) for label in own.labels]
        part = table.extremes.get((own.order, own.values))
        if part not in sides or not all(map(table.is_known, labels)):
            return None
        if any(
            table.number(x) >= table.number(y) for x, y in pairwise(labels)
        ):  # of equal elements, not the least label
            return None
        other = sides[0] if sides[1] == part else sides[1]
        return own, labels, other, table.number(children[0])

    def _alike(self, key: tuple[Any, ...], operands: Sequence[int]) -> Numbers:
        values = [self._forms[n].at[0] for n in operands]
        return self.hashed(key, *(sorted(values) if key[1] in ("EQ", "NE") else values))

    def _truth(self, number: int, name: str, operands: Sequence[int]) -> Numbers:
        if name in ("and", "or", "not"):
            return self.at_least(number, 1)
        if name == "xor":
            result = self.zero
            for n in operands:
                both = self.times(result, self._forms[n].at)
                result = self.less(self.add((result, self._forms[n].at)), self.add((both, both)))
            return result
        return self.hashed(name, *(self._forms[n].at[0] for n in operands))

    def _residue(self, number: int, bits: int) -> Numbers:
        """Return an integer modulo 2**bits, which is what a type of ``bits`` bits keeps of it."""
        place = number, bits
        if place not in self._residues:
            self.table.spend(TERM)
            self._residues[place] = self._left(number, bits)
        return self._residues[place]

    def _left(self, number: int, bits: int) -> Numbers:
        table = self.table
        key, operands = table.terms[number]
        if table.is_known(number):
            return self.number(table.number(number) % 2**bits)
        if table.head_of(number) == FUNCTION:
            base, rows = segments(table, number)
            moved = {None if (by := shift_of(table, c)) is None else by % 2**bits for _, c in rows}
            if len(moved) == 1 and (by := moved.pop()) is not None:
                return self.add((self._residue(base, bits), self.number(by)))
        own = _element(key) if isinstance(key, tuple) and table.head_of(number) not in (CHOICE, FUNCTION) else ""
        if own != "i1" and is_integer(own) and _width(own) >= bits:
            if key[0] in ("add", "multiply") and len(key) == 2:
                parts = [self._residue(n, bits) for n in operands]
                return self.add(parts) if key[0] == "add" else reduce(self.times, parts)
            if key[0] == "negated":
                return self.less(self.zero, self._residue(operands[0], bits))
            if key[0] == "convert" and is_integer(str(key[2])):
                return self._residue(operands[0], bits)
        return self._forms[number].at


def _width(element: str) -> int:
    return int(element.lstrip("ui"))


def _name(key: tuple[Any, ...]) -> str:
    return str(key[0]).split(".")[-1]


def _element(key: tuple[Any, ...]) -> str:
    """Return the type of the elements of a term; empty for others."""
    if key[0] == "compare":
        return "i1"
    if key[0] == "product":
        return str(key[3])
    if isinstance(key[0], str) and key[0].startswith(("stablehlo.", "chlo.")):
        return str(key[2]) if len(key) > 2 else ""
    return str(key[1]) if len(key) > 1 else ""


def _simplest(value: Any) -> tuple[int, int]:
    """Return the fraction of the least denominator that a type rounds to ``value``, an array of a positive number."""
    bits = int(value.view(f"u{value.itemsize}")[0])
    near = [np.array([bits + step]).astype(f"u{value.itemsize}").view(value.dtype)[0] for step in (0, -1, 1)]
    if not np.isfinite(near[2]):
        return float(near[0]).as_integer_ratio()
    exact, below, above = (Fraction(float(number)) for number in near)
    low, high = (exact + below) / 2, (exact + above) / 2
    numerators, denominators = (0, 1), (1, 0)
    while True:  # continued fractions, until a number lies between the two
        whole = low.numerator // low.denominator
        if whole + 1 < high:
            last = whole + 1
            return last * numerators[1] + numerators[0], last * denominators[1] + denominators[0]
        numerators = numerators[1], whole * numerators[1] + numerators[0]
        denominators = denominators[1], whole * denominators[1] + denominators[0]
        rest = low - whole
        low, high = 1 / (high - whole), (1 / rest if rest else Fraction(WIDE) ** 8)
