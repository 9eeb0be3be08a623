"""Integers of n bits as numbers modulo 2**n, so that a u8 sum equals an i32 sum converted to u8."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import reduce

from shardpass.proving.rules.integers import is_integer
from shardpass.proving.scalars.bounds import element_of, name_of
from shardpass.proving.scalars.firsts import first_of_parts
from shardpass.proving.scalars.forms import Form, Reals
from shardpass.proving.scalars.numbers import Numbers
from shardpass.proving.scalars.rows import segments, shift_of
from shardpass.proving.scalars.table import CHOICE, FUNCTION, TERM
from shardpass.proving.scalars.truths import Truths

OPS = ("add", "multiply", "negated", "convert", "compare", "minimum", "maximum", "and", "or", "xor", "not")


class Rings:
    """Computes the values of integer terms from ``forms``, the values of the terms so far."""

    def __init__(self, reals: Reals, truths: Truths, forms: Mapping[int, Form]) -> None:
        self.table, self.field, self.reals, self.truths, self.forms = truths.table, reals.field, reals, truths, forms
        self._residues: dict[tuple[int, int], Numbers] = {}

    def function(self, number: int) -> Numbers:
        """Return the value of a table from an integer to integers: a sum of its steps."""
        base, rows = segments(self.table, number)
        at = before = self.field.zero
        for k, (start, child) in enumerate(rows):
            by = shift_of(self.table, child)
            own = self.forms[child].at if by is None else self.field.add((self.forms[base].at, self.field.number(by)))
            step = self.field.less(own, before)
            at = self.field.add((at, self.field.times(self.truths.at_least(base, start), step) if k else step))
            before = own
        return at

    def op(self, number: int) -> Numbers:
        """Return the value of term ``number``, which applies one of ``OPS`` to integers or compares values."""
        key, operands = self.table.terms[number]
        name, element = name_of(key), element_of(key)
        forms = [self.forms[n] for n in operands]
        if name == "compare":
            return self._alike(key, forms) if is_integer(key[3]) else self.truths.compared(number)
        if name == "convert" and not is_integer(str(key[2])):
            return self.field.hashed(key, forms[0].at[0])
        if element == "i1" and name in ("and", "or", "not"):
            return self.truths.at_least(number, 1)
        if element == "i1":
            return self._exclusive(forms) if name == "xor" else self.field.hashed(name, *(f.at[0] for f in forms))
        if name in ("minimum", "maximum") and all(self.truths.bounds.of(n) == (0, 1) for n in operands):
            return self.truths.at_least(number, 1)
        if name == "minimum" and (label := first_of_parts(self.truths, operands)) is not None:
            return label
        if name in ("minimum", "maximum", "and", "or", "xor", "not"):
            return self.reals.of_set(name, element, forms).at
        return self.field.hashed("wraps", element, self._residue(number, _width(element))[0])

    def _alike(self, key: tuple[object, ...], forms: Sequence[Form]) -> Numbers:
        values = [f.at[0] for f in forms]
        return self.field.hashed(key, *(sorted(values) if key[1] in ("EQ", "NE") else values))

    def _exclusive(self, forms: Sequence[Form]) -> Numbers:
        result = self.field.zero
        for form in forms:
            both = self.field.times(result, form.at)
            result = self.field.less(self.field.add((result, form.at)), self.field.add((both, both)))
        return result

    def _residue(self, number: int, bits: int) -> Numbers:
        """Return the value of term ``number`` modulo 2**bits: what is left of it in a type of ``bits`` bits."""
        place = number, bits
        if place not in self._residues:
            self.table.spend(TERM)
            self._residues[place] = self._left(number, bits)
        return self._residues[place]

    def _left(self, number: int, bits: int) -> Numbers:
        table = self.table
        key, operands = table.terms[number]
        if table.is_known(number):
            return self.field.number(_signed(table.number(number), bits))
        if table.head_of(number) in (CHOICE, FUNCTION):
            linear = self._linear(number, bits)
            if linear is None:
                return self.forms[number].at
            base, by, offset = linear
            return self.field.add((self.field.times(by, self._residue(base, bits)), offset))
        own = element_of(key)
        if own != "i1" and is_integer(own) and _width(own) >= bits:
            if key[0] in ("add", "multiply") and len(key) == 2:
                parts = [self._residue(n, bits) for n in operands]
                return self.field.add(parts) if key[0] == "add" else reduce(self.field.times, parts)
            if key[0] == "negated":
                return self.field.less(self.field.zero, self._residue(operands[0], bits))
            if key[0] == "convert" and is_integer(str(key[2])):
                return self._residue(operands[0], bits)
        return self.forms[number].at

    def _linear(self, number: int, bits: int) -> tuple[int, Numbers, Numbers] | None:
        """Return t, a and b of a table from an integer t to a * t + b modulo 2**bits; None for other tables."""
        table = self.table
        base, rows = segments(table, number)
        if not self.truths.bounds.is_integers(number):
            return None
        ends = [*(start for start, _ in rows[1:]), table.ranges[base][1]]
        points = []  # (the number, the value there, by how much it grows; None where it is one number)
        for (start, child), end in zip(rows, ends, strict=True):
            by = shift_of(table, child)
            value = table.number(child) if by is None else start + by
            points.append((start, value, int(by is not None) if end - start > 1 else None))
        (first, least, _), *others = points
        slopes = {slope for _, _, slope in points if slope is not None} or {others[0][1] - least}
        by = slopes.pop()
        if slopes or any((value - least - by * (start - first)) % 2**bits for start, value, _ in others):
            return None
        return base, self.field.number(_signed(by, bits)), self.field.number(_signed(least - by * first, bits))


def _signed(value: int, bits: int) -> int:
    """Return the integer of the least size that is ``value`` modulo 2**bits, so that products of these are exact."""
    half = 1 << (bits - 1)
    return (value + half) % (2 * half) - half


def _width(element: str) -> int:
    return int(element.lstrip("ui"))
