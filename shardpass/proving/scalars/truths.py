"""Truth values: 1 or 0 in a field, with equal values for equivalent comparisons.

[x + y >= 1] of counts is [x >= 1] or [y >= 1], [min(x, y) >= c] is [x >= c] and [y >= c], and a comparison of a table
with a number is one of the integer that chooses. What is left are conjunctions, as sets of truth values.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np

from shardpass.proving.relations.laws import ORDER, Law
from shardpass.proving.rules.integers import is_integer
from shardpass.proving.scalars.bounds import Bounds, element_of, name_of
from shardpass.proving.scalars.forms import Form
from shardpass.proving.scalars.numbers import Field, Numbers
from shardpass.proving.scalars.rows import segments, shift_of
from shardpass.proving.scalars.table import CHOICE, FUNCTION, TERM, Scalars

Parts = frozenset[Numbers]


class Truths:
    """Computes the truth values (1 or 0 in ``field``) of the comparisons in ``table``, from the values ``forms``."""

    def __init__(
        self, table: Scalars, field: Field, forms: Mapping[int, Form], bounds: Bounds, has: Callable[[Law], bool]
    ) -> None:
        self.table, self.field, self.forms, self.bounds, self.has = table, field, forms, bounds, has
        self._conjuncts: dict[tuple[int, int, bool], Parts] = {}

    def negated(self, truth: Numbers) -> Numbers:
        return self.field.less(self.field.one, truth)

    def ordered(self, low: Numbers, high: Numbers, strict: bool) -> Numbers:
        """Return the truth value of ``low < high`` if ``strict``, else of ``low <= high``.

        Callers pass the smaller number in the order of the field as ``low``.
        """
        return self.field.hashed("LT" if strict else "LE", low[0], high[0])

    def compared(self, number: int, tied: bool = False) -> Numbers:
        """Return the truth value of a comparison of floats; with ``tied``, equal floats may give either value."""
        key, operands = self.table.terms[number]
        direction = key[1]
        counted = self._counted(direction, *operands)
        if counted is not None:
            return counted
        x, y = (self.forms[n].at for n in operands)
        if direction in ("EQ", "NE"):
            same = self.field.hashed("EQ", key[2:], *sorted((x[0], y[0])))
            return same if direction == "EQ" else self.negated(same)
        strict = direction == "LT"
        if not self.has(ORDER) or key[2]:  # in the total order, -0 is less than 0
            return self.field.hashed(key, x[0], y[0])
        if x <= y:
            return self.ordered(x, y, strict or tied)
        return self.negated(self.ordered(y, x, not strict or tied))

    def _counted(self, direction: str, x: int, y: int) -> Numbers | None:
        """Compare a count that is a float with a constant; None for other floats."""
        first, second = self.bounds.constant(x), self.bounds.constant(y)
        if (first is None) == (second is None):
            return None
        other, constant = (y, first) if first is not None else (x, second)
        assert constant is not None
        if not self.bounds.has(other):
            return None
        ceiling, above = int(np.ceil(constant)), int(np.floor(constant)) + 1
        if direction in ("EQ", "NE"):
            same = self.field.less(self.at_least(other, ceiling), self.at_least(other, above))
            return same if direction == "EQ" else self.negated(same)
        if other == y:  # constant < count
            return self.at_least(other, above if direction == "LT" else ceiling)
        return self.negated(self.at_least(other, ceiling if direction == "LT" else above))

    def at_least(self, number: int, least: int) -> Numbers:
        """Return whether an integer, or a float that is one, is ``least`` or more."""
        return self._all(self._conjunction(number, least, True))

    def _all(self, parts: Parts) -> Numbers:
        if self.field.zero in parts:
            return self.field.zero
        if len(parts) < 2:
            return next(iter(parts), self.field.one)
        return self.field.hashed("and", *sorted(part[0] for part in parts))

    def _conjunction(self, number: int, least: int, positive: bool) -> Parts:
        """Return truth values that are all true where [number >= least] is, or where it is not."""
        place = number, least, positive
        if place not in self._conjuncts:
            self.table.spend(TERM)
            self._conjuncts[place] = self._parts(number, least, positive)
        return self._conjuncts[place]

    def _parts(self, number: int, least: int, positive: bool) -> Parts:
        low, high = self.bounds.of(number)
        if least <= low or least > high:
            return frozenset() if (least <= low) == positive else frozenset([self.field.zero])
        word, inner = self._split(number, least)
        if not isinstance(word, str):
            return frozenset([word if positive else self.negated(word)])
        if word == "not":
            return self._conjunction(*inner[0], not positive)
        same = (word == "and") == positive
        parts = Parts().union(*(self._conjunction(n, k, positive if same else not positive) for n, k in inner))
        return parts if same else frozenset([self.negated(self._all(parts))])

    def _split(self, number: int, least: int) -> tuple[str | Numbers, list[tuple[int, int]]]:
        """Return [number >= least] as ("and", "or" or "not", [(number, least)]), or the value of an atom."""
        key, operands = self.table.terms[number]
        if self.table.head_of(number) in (CHOICE, FUNCTION):
            return self._table(number, least)
        name, element = name_of(key), element_of(key)
        if name == "compare" and not is_integer(key[3]):
            return self.compared(number), []
        if name == "convert" and is_integer(str(key[2])) and not is_integer(element):
            return "and", [(operands[0], least)]
        if name in ("minimum", "maximum") or (name in ("and", "or") and element == "i1"):
            return "and" if name in ("minimum", "and") else "or", [(n, least) for n in operands]
        if name == "not" and element == "i1":
            return "not", [(operands[0], 1)]
        if name == "add" and self.bounds.fits(operands, element):
            lows, highs = zip(*map(self.bounds.of, operands), strict=True)
            if least == sum(lows) + 1:
                return "or", [(n, low + 1) for n, low in zip(operands, lows, strict=True)]
            if least == sum(highs):
                return "and", list(zip(operands, highs, strict=True))
        value = self.forms[number].at
        return value if self.bounds.of(number) == (0, 1) else self.field.hashed(">=", value[0], least), []

    def _table(self, number: int, least: int) -> tuple[str | Numbers, list[tuple[int, int]]]:
        """Return the truth value of ``number >= least`` for a table, from the integer that selects its entry."""
        base, rows = segments(self.table, number)
        cuts: list[tuple[int, bool]] = []
        for (start, child), end in zip(rows, [*(s for s, _ in rows[1:]), self.table.ranges[base][1]], strict=True):
            by = shift_of(self.table, child)
            if by is None:
                cuts.append((start, self.table.number(child) >= least))
                continue
            first = max(start, least - by)
            cuts += [(start, False)] * (start < first) + [(first, True)] * (first < end)
        kept = [cut for k, cut in enumerate(cuts) if k == 0 or cut[1] != cuts[k - 1][1]]
        if len(kept) == 2:
            return ("and" if kept[1][1] else "not"), [(base, kept[1][0])]
        at = self.field.one if kept[0][1] else self.field.zero
        for start, on in kept[1:]:
            step = self.at_least(base, start)
            at = self.field.add((at, step)) if on else self.field.less(at, step)
        return at, []
