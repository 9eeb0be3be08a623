"""The values of terms in finite fields, by which terms are compared as functions of real numbers and of integers.

A term is evaluated with a random number in the place of each function that no law describes: an element of an
argument, or another function of the values of its operands. Sums, products and constants are those of a field of
p > 2**127 numbers, so two terms that a law of arithmetic makes equal have one value, and two that are different
polynomials have one with a probability below 2**-90. The random numbers are hashes, so that a proof is the same in
every run.

- select(p, a, b) is b + p * (a - b), where p is 0 or 1, and max(a, b) is select(a > b, a, b).
- A choice by an integer is a sum of its steps, [i >= 4] * (a - b) + b.
- Constants whose sum may be rounded are one function of all of them.

``numbers.py`` is the arithmetic; ``forms.py`` has the laws of real numbers, ``truths.py`` those of comparisons,
``rings.py`` those of integers that wrap, ``firsts.py`` that of argmax, and ``bounds.py`` tells which numbers an integer
may be.

Each law that floats keep only in part can be turned off. Those that a proof lists are those without which two of its
terms differ.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from fractions import Fraction
from functools import reduce
from itertools import pairwise
from typing import Any

import numpy as np

from shardpass.element_types import element_type
from shardpass.proving.relations import laws
from shardpass.proving.relations.laws import Law
from shardpass.proving.rules.integers import is_integer
from shardpass.proving.scalars import rings
from shardpass.proving.scalars.bounds import Bounds, element_of, exact, name_of
from shardpass.proving.scalars.choices import overlaid
from shardpass.proving.scalars.forms import Form, Reals
from shardpass.proving.scalars.numbers import Field, Numbers
from shardpass.proving.scalars.rings import Rings
from shardpass.proving.scalars.rows import Segments, segments
from shardpass.proving.scalars.table import CHOICE, FUNCTION, TERM, Scalars
from shardpass.proving.scalars.truths import Truths

_POWERS = ("exponential", "logistic", "exponential_minus_one")
_LAWS: Mapping[str, tuple[Law, ...]] = {  # those without which a function is one like any other
    "exponential": (laws.EXPONENTIAL,),
    "divide": (laws.DIVISOR,),
    "log": (laws.EXPONENTIAL,),
    "rsqrt": (laws.FUNCTIONS,),
    "abs": (laws.FUNCTIONS,),
    "log_plus_one": (laws.FUNCTIONS, laws.EXPONENTIAL),
    "exponential_minus_one": (laws.FUNCTIONS, laws.EXPONENTIAL),
    "logistic": (laws.FUNCTIONS, laws.EXPONENTIAL),
}


class Fields:
    """The values of the terms of ``table``, without the laws ``off``."""

    def __init__(self, table: Scalars, off: Iterable[Law] = ()) -> None:
        self.table, self.off = table, frozenset(off)
        self.field = Field(any(name_of(key) in _POWERS for key, _ in table.terms), table.spend)
        self.reals = Reals(self.field, self.has(laws.CANCELLED), self.has(laws.QUOTIENT))
        self.bounds = Bounds(table)
        self._forms: dict[int, Form] = {}
        self.truths = Truths(table, self.field, self._forms, self.bounds, self.has)
        self.rings = Rings(self.reals, self.truths, self._forms)

    def has(self, law: Law) -> bool:
        return law not in self.off

    def value(self, number: int) -> int:
        """Return the value of a term, by which it is compared."""
        return self.form(number).mark

    def form(self, number: int) -> Form:
        if number not in self._forms:
            for n in sorted(
                self.table.below([number], self._forms)
            ):  # operands have lesser numbers than what they make
                self.table.spend(2 * TERM + 4 * len(self.table.terms[n][1]) * len(self.field.primes))
                self._forms[n] = self._made(n)
        return self._forms[number]

    def _made(self, number: int) -> Form:
        table = self.table
        key, operands = table.terms[number]
        if table.is_known(number):
            return Form(self.field.number(table.number(number)))
        if table.head_of(number) in (CHOICE, FUNCTION):
            of_integers = table.head_of(number) == FUNCTION or self.bounds.is_integers(number)
            return Form(self.rings.function(number)) if of_integers else self._choice(number)
        name, element = name_of(key), element_of(key)
        forms = [self._forms[n] for n in operands]
        if name == "constant":
            return self._constant(key)
        if name in rings.OPS and is_integer(element):
            fits = name == "add" and self.bounds.fits(operands, element)
            return self.reals.added(forms) if fits else Form(self.rings.op(number))
        if name == "product":
            return self.reals.scaled(self._multiply(element, operands, forms), self.field.hashed(key))
        made: Form | None = None
        if name in _RULES and len(key) == 2:
            made = _RULES[name](self, element, operands, forms)
        elif name == "convert":
            made = self._convert(key, operands[0], forms[0])
        elif name in _LAWS and not is_integer(element) and "complex" not in str(key):
            made = self._named(key, operands, forms)
        return self.reals.function(key, forms) if made is None else made

    def _constant(self, key: tuple[Any, ...]) -> Form:
        _, element, bits = key
        array = np.frombuffer(bits, element_type(element).dtype)
        zeroed, nothing = not self.has(laws.ZERO), self.reals.nothing
        if array.dtype.kind == "c":
            return Form(self.field.hashed(key)) if array[0] else replace(nothing, zeroed=zeroed)
        value = float(array[0])
        if not np.isfinite(value):
            return Form(self.field.hashed(key), True, value < 0)
        if not value:
            return replace(nothing, sign=1, zeroed=zeroed and not np.signbit(value))
        at = self.field.number(*_simplest(np.abs(array)))
        form = Form(at, scale=at, sign=2)
        return self.reals.negated(form) if value < 0 else form

    # ---------------------------------------------------------------- ops that have two operands, or many

    def _add(self, element: str, operands: Sequence[int], forms: Sequence[Form]) -> Form:
        zeroed, zero = any(f.zeroed for f in forms), self.field.zero
        forms = [f for f in self._rounded(element, operands, forms) if f.at != zero] or forms[:1]
        if len(forms) == 1:
            return replace(forms[0], zeroed=zeroed)
        if sum(f.least for f in forms) == sum(f.loose for f in forms) == 1 and self.has(laws.CANCELLED):
            return next(f for f in forms if f.least)  # -inf + x
        if any(f.loose for f in forms):
            return self.reals.of_set("add", element, forms)
        return replace(self.reals.added(forms), zeroed=zeroed)

    def _rounded(self, element: str, operands: Sequence[int], forms: Sequence[Form]) -> Sequence[Form]:
        """Return the summands, with one function in the place of constants whose sum may be rounded."""
        known = [self.bounds.constant(n) for n in operands]
        values = [Fraction(v) for v in known if v]
        if len(values) < 2 or sum(map(abs, values)) * max(v.denominator for v in values) <= exact(element):
            return forms
        apart = [f for v, f in zip(known, forms, strict=True) if v]
        rest = [f for v, f in zip(known, forms, strict=True) if not v]
        return [*rest, self.reals.of_set("constants", element, apart, False)]

    def _multiply(self, element: str, operands: Sequence[int], forms: Sequence[Form]) -> Form:
        if not self.has(laws.SELECTED):
            return self._times(element, forms)
        tables = [self._table(operand) for operand in operands]
        bases = Counter(table[0] for table in tables if table is not None)
        factors = [f for f, table in zip(forms, tables, strict=True) if table is None or bases[table[0]] == 1]
        for base in (base for base, count in bases.items() if count > 1):  # a product of choices, row by row
            rows = overlaid(self.table, base, [table[1] for table in tables if table is not None and table[0] == base])
            products = [(low, self._times(element, [*map(self.form, children)])) for low, _, children in rows]
            factors.append(self._chosen(base, products))
        return self._times(element, factors)

    def _times(self, element: str, forms: Sequence[Form]) -> Form:
        forms = [f for f in forms if f.at != self.field.one] or forms[:1]
        loose = any(f.loose for f in forms)
        zero = any(f.at == self.field.zero for f in forms) and not self.has(laws.CANCELLED)
        if len(forms) > 1 and (loose or zero or not self.has(laws.FACTOR)):
            return self.reals.of_set("multiply", element, forms, loose)
        return reduce(self.reals.times, forms)

    def _table(self, number: int) -> tuple[int, Segments] | None:
        """Return the integer by which a factor is chosen, and the table; of a mask that is converted, its numbers."""
        key, operands = self.table.terms[number]
        if name_of(key) == "convert" and is_integer(str(key[2])) and self.bounds.of(operands[0]) == (0, 1):
            (number,) = operands
            if self.table.head_of(number) != CHOICE and number in self.table.ranges:
                return number, [(0, self.table.integer(0)), (1, self.table.integer(1))]
        return segments(self.table, number) if self.table.head_of(number) == CHOICE else None

    def _negate(self, element: str, operands: Sequence[int], forms: Sequence[Form]) -> Form | None:
        (form,) = forms
        return None if form.loose or not self.has(laws.NEGATED_SUM) else self.reals.negated(form)

    def _maximum(self, element: str, operands: Sequence[int], forms: Sequence[Form]) -> Form:
        loose, field = any(f.loose for f in forms), self.field
        if loose or len(forms) != 2 or not self.has(laws.SELECTED):
            return self.reals.of_set("maximum", element, forms, loose)
        low, high = sorted(f.at for f in forms)
        return Form(field.add((low, field.times(self.truths.ordered(low, high, True), field.less(high, low)))))

    def _minimum(self, element: str, operands: Sequence[int], forms: Sequence[Form]) -> Form:
        """Return a + b - max(a, b), or -max(-a, -b, ...)."""
        loose, field = any(f.loose for f in forms), self.field
        if not loose and len(forms) == 2 and self.has(laws.SELECTED):
            return Form(field.less(field.add(f.at for f in forms), self._maximum(element, operands, forms).at))
        if loose or not self.has(laws.NEGATED_SUM):
            return self.reals.of_set("minimum", element, forms, loose)
        return self.reals.negated(self.reals.of_set("maximum", element, [*map(self.reals.negated, forms)], False))

    # ---------------------------------------------------------------- functions

    def _convert(self, key: tuple[Any, ...], operand: int, form: Form) -> Form | None:
        _, new, old = key
        if is_integer(old):
            low, high = self.bounds.of(operand)
            return form if -exact(new) <= low and high <= exact(new) else None
        if form.at == self.field.zero and self.has(laws.ZERO):
            return form
        if form.loose or not self.has(laws.CONVERTED) or is_integer(new) or form.at == self.field.zero:
            return None
        return self.reals.scaled(form, self.field.hashed("convert", new, old))

    def _named(self, key: tuple[Any, ...], operands: Sequence[int], forms: Sequence[Form]) -> Form | None:
        name, form, reals = name_of(key), forms[0], self.reals
        if not all(map(self.has, _LAWS[name])):
            return None
        if name == "exponential" and form.least:
            return reals.nothing
        if any(f.loose for f in forms):
            return None
        if name == "exponential":
            return reals.exponential(form)
        if name == "divide":
            inverse = self._inverse_of(operands[1])
            return replace(reals.function(key, forms), loose=True) if inverse is None else reals.times(form, inverse)
        if name == "log":
            return reals.logarithm(form)
        if name == "rsqrt":
            return reals.inverse(reals.function(("stablehlo.sqrt", *key[1:]), forms))
        if name == "abs":
            return self._absolute(form)
        if name == "log_plus_one":
            return reals.logarithm(reals.added([reals.unit, form]))
        if name == "exponential_minus_one":
            return reals.added([reals.exponential(form), reals.negated(reals.unit)])
        return reals.inverse(reals.added([reals.unit, reals.exponential(reals.negated(form))]))

    def _absolute(self, form: Form) -> Form | None:
        if form.sign or not self.has(laws.SELECTED):
            return form if form.sign else None
        field = self.field
        sign = field.less(field.times(field.number(2), self.truths.ordered(field.zero, form.at, True)), field.one)
        return Form(field.times(form.at, sign))

    def _inverse_of(self, number: int) -> Form | None:
        """Return the term 1 / x; for a product, the product of the inverses of its factors. None if x may be 0 or
        infinite.
        """
        key, operands = self.table.terms[number]
        form = self._forms[number]
        if form.at == self.field.zero or form.loose:
            return None
        if name_of(key) == "constant":
            inverse = self.field.inverse(form.at)
            return Form(inverse, scale=inverse, sign=form.sign)
        if name_of(key) == "multiply" and len(key) == 2:
            factors = [self._inverse_of(operand) for operand in operands]
            return None if None in factors else reduce(self.reals.times, [f for f in factors if f])
        return self.reals.inverse(form)

    # ---------------------------------------------------------------- choices

    def _choice(self, number: int) -> Form:
        base, rows = segments(self.table, number)
        return self._chosen(base, [(start, self._forms[child]) for start, child in rows])

    def _chosen(self, base: int, rows: Sequence[tuple[int, Form]]) -> Form:
        """Return the first form, and the steps at which the others begin."""
        rows = [rows[0], *(row for before, row in pairwise(rows) if row[1].mark != before[1].mark)]
        forms, field = [form for _, form in rows], self.field
        if len(forms) == 1:
            return forms[0]
        if any(f.loose for f in forms) or not self.has(laws.SELECTED):
            return self.reals.function(("choice", self._forms[base].at[0], tuple(start for start, _ in rows)), forms)
        at = forms[0].at
        for before, (start, form) in zip(forms, rows[1:], strict=False):
            step = field.less(form.at, before.at)
            at = field.add((at, field.times(self._step(base, start, step), step)))
        return replace(self.reals.added(forms), at=at, sign=min(f.sign for f in forms), power=None)

    def _step(self, base: int, start: int, by: Numbers) -> Numbers:
        """Return [base >= start]; of a comparison of x and y, where ``by`` is a multiple of x - y, that of x < y."""
        key, operands = self.table.terms[base]
        if name_of(key) == "compare" and key[1] in ("LT", "LE") and not is_integer(key[3]):
            x, y = (self._forms[n].at for n in operands)
            apart = self.field.less(x, y)
            if any(self.field.times(apart, self.field.number(k)) == by for k in (1, -1, 2, -2)):
                return self.truths.compared(base, True)
        return self.truths.at_least(base, start)


_RULES = {
    "add": Fields._add,
    "multiply": Fields._multiply,
    "maximum": Fields._maximum,
    "minimum": Fields._minimum,
    "negated": Fields._negate,
}


def _simplest(value: Any) -> tuple[int, int]:
    """Return the fraction of the least denominator that a type rounds to ``value``, an array of a positive number."""
    bits = int(value.view(f"u{value.itemsize}")[0])
    near = [np.array([bits + step]).astype(f"u{value.itemsize}").view(value.dtype)[0] for step in (0, -1, 1)]
    if not np.isfinite(near[2]):
        return float(near[0]).as_integer_ratio()
    middle, below, above = (Fraction(float(number)) for number in near)
    low, high = (middle + below) / 2, (middle + above) / 2
    numerators, denominators = (0, 1), (1, 0)
    while True:  # continued fractions, until a number lies between the two
        whole = low.numerator // low.denominator
        if whole + 1 < high:
            last = whole + 1
            return last * numerators[1] + numerators[0], last * denominators[1] + denominators[0]
        numerators = numerators[1], whole * numerators[1] + numerators[0]
        denominators = denominators[1], whole * denominators[1] + denominators[0]
        rest = low - whole
        low, high = 1 / (high - whole), (1 / rest if rest else Fraction(2**560))
