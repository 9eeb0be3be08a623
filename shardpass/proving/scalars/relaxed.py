"""Whether terms are equal by the laws that a proof may take, which are then listed.

The terms are compared by their values (``values.py``): first without the laws that floats keep only in part, then with
all of them. Listed are the laws without which two of the terms differ, each with the ops that it is about.
"""

from __future__ import annotations

from collections.abc import Sequence

from shardpass.proving.relations.laws import (
    CANCELLED,
    CONVERTED,
    DIVISOR,
    EXPONENTIAL,
    FACTOR,
    FIRST,
    FUNCTIONS,
    INEXACT,
    NEGATED_SUM,
    ORDER,
    QUOTIENT,
    SELECTED,
    ZERO,
    Law,
    Laws,
)
from shardpass.proving.scalars.constants import zeros
from shardpass.proving.scalars.table import Scalars, TooLarge
from shardpass.proving.scalars.values import Fields

Pairs = Sequence[tuple[int, int]]
_WORDS = {
    NEGATED_SUM: ("negated",),
    FACTOR: ("multiply", "product"),
    DIVISOR: ("divide",),
    CONVERTED: ("convert",),
    CANCELLED: ("negated", "multiply", "product"),
    EXPONENTIAL: ("exponential", "log"),
    FUNCTIONS: ("rsqrt", "logistic", "log_plus_one", "exponential_minus_one", "abs", "log"),
    SELECTED: ("choice", "maximum", "minimum", "abs"),
    ORDER: ("compare",),
    FIRST: ("minimum",),
    QUOTIENT: ("divide", "rsqrt", "logistic"),
}


class Relaxed:
    """The comparisons of one table."""

    def __init__(self, table: Scalars, laws: Laws) -> None:
        self.table, self.laws = table, laws
        self._fields: dict[frozenset[Law], Fields] = {}

    def same(self, pairs: Pairs) -> bool:
        """Return whether the terms of each pair are equal."""
        used = self._needed(pairs)
        for law in () if used is None else used:
            for number in self._places(pairs, law):
                key = self.table.terms[number][0]
                self.laws.allows(law, self.table.origin(number), f" to {key[1]}" if law == CONVERTED else "")
        return used is not None

    def _needed(self, pairs: Pairs) -> list[Law] | None:
        """Return the laws, among those that floats keep only in part, that make all ``pairs`` equal; None if some
        pair differs even with all laws.
        """
        if any(map(self._are_constants, pairs)):
            return None
        other = next((pair for pair in pairs if not self._equal(*pair, set(INEXACT))), None)
        if other is not None and not self._equal(*other, set()):  # not the values of all others, of a wrong program
            return None
        used, left = set[Law](), list(pairs)
        for few in ([], [ZERO]):  # most pairs need no more
            count, off = len(left), set(INEXACT) - set(few)
            left = [pair for pair in left if not self._equal(*pair, off)]
            used |= set(few if len(left) < count else [])
            if not left:
                return sorted(used, key=INEXACT.index)
            if self.laws.strict:
                return None
        return self._fewest(left, used)

    def _fewest(self, pairs: Pairs, used: set[Law]) -> list[Law] | None:
        """Return laws by which all ``pairs`` are equal, ``used`` among them, none of which can be left out."""
        words = {self._word(n) for n in self.table.below(n for pair in pairs for n in pair)}
        off = {law for law, about in _WORDS.items() if words.isdisjoint(about)} - used
        if not self._are_equal(pairs, off):
            return None
        try:
            for law in INEXACT:
                if law not in used | off and self._are_equal(pairs, {*off, law}):
                    off.add(law)
        except TooLarge:  # the others are listed, needed or not
            pass
        return [law for law in INEXACT if law not in off]

    def _are_equal(self, pairs: Pairs, off: set[Law]) -> bool:
        return all(self._equal(x, y, off) for x, y in pairs)

    def _equal(self, x: int, y: int, off: set[Law]) -> bool:
        """Return whether two terms are equal without the laws ``off``."""
        key = frozenset(off)
        fields = self._fields[key] = self._fields.get(key) or Fields(self.table, off)
        if fields.value(x) != fields.value(y):
            return False
        return CANCELLED not in off or self._equal(x, y, off - {CANCELLED})  # without it, -a is a in the field

    def _are_constants(self, pair: tuple[int, int]) -> bool:
        """Return whether both are constants, which differ."""
        return all(self._word(n) == "constant" or self.table.is_known(n) for n in pair)

    def _places(self, pairs: Pairs, law: Law) -> list[int]:
        """Return the terms that ``law`` is about, of the program of one device alone if there are any."""
        whole, local = (self.table.below([pair[k] for pair in pairs]) for k in (0, 1))
        for among in (local - whole, whole | local):
            numbers = sorted(n for n in among if self._is_about(n, law) and self.table.origin(n) is not None)
            if numbers:
                return numbers
        return [n for pair in pairs for n in pair if self.table.origin(n) is not None][:1]

    def _is_about(self, number: int, law: Law) -> bool:
        word, operands = self._word(number), self.table.terms[number][1]
        if law == ZERO:
            key = self.table.terms[number][0]
            return word == "add" and bool(set(operands) & set(zeros(self.table, key[1]).tolist()))
        return word in _WORDS[law]

    def _word(self, number: int) -> str:
        key = self.table.terms[number][0]
        return str(key[0]).split(".")[-1] if isinstance(key, tuple) else ""
