"""Terms: functions of the whole program's arguments, from index vectors to elements, one object each.

A term has no shape. It is a function on index vectors of ``rank`` integers; pieces (``pieces.py``) say which of them a
value contains, and where. So a slice, a transpose, a broadcast and a tile of a value are the same term.

An op on terms is a pattern: ``rows`` lists, for every index of every operand's term in order, the index of the new term
that it equals (or -1) and a constant to add. Example: x[i, j] + b[j] has the rows ((0, 0), (1, 0), (1, 0)) and rank 2;
x[i] + x[i + 1] has ((0, 0), (0, 1)) and rank 1; a row (-1, 3) reads the operand at 3.

A reduction's term has, after the indices that it keeps, the range that it covers: ``sum[.., lo, hi]``. Ranges that
adjoin add up to the whole, which is all that proofs need to know of partial sums.

Equal terms are one number, so the comparison of terms is that of numbers. Cost: O(operands) a term.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from typing import Any

Row = tuple[int, int]
Key = tuple[Any, ...]  # the kind of the term first


@dataclass(frozen=True, slots=True)
class Term:
    """A function of the whole program's arguments, from an index vector of ``rank`` integers to an element.

    ``key``: the op and its attributes. ``parts``: the numbers of the operands' terms; ``rows``: how their indices
    follow from the new indices. ``ranges``: pairs of index positions (lo, hi) that bound a range; terms over adjacent
    ranges combine by ``reducer``.
    """

    key: Key
    parts: tuple[int, ...]
    rank: int
    rows: tuple[Row, ...] = ()
    reducer: Hashable = None
    ranges: tuple[tuple[int, int], ...] = ()


class Terms:
    """The table of all terms of one proof; those of the whole program come first."""

    def __init__(self) -> None:
        self.all: list[Term] = []
        self._numbers: dict[Term, int] = {}
        self._patterns: dict[tuple[Key, tuple[int, ...]], list[int]] = {}
        self._extensions: dict[tuple[int, ...], list[int]] = {}
        self.has_merges = False
        self._merges: dict[int, list[int]] = {}
        self._reductions: dict[tuple[Hashable, int], list[int]] = {}
        self.values: dict[int, Any] = {}  # of constants: a scalar, or an array
        self._constants: dict[Hashable, int] = {}
        self.sets: list[Any] = []  # of boxes, [box, lows and highs] of ranges
        self._set_numbers: dict[Hashable, int] = {}
        self.bodies: Any = None  # what bodies of reductions compute, as a table of scalar terms
        self.position = self.make(Term(("position",), (), 1))

    def make(self, term: Term) -> int:
        """Return the number of ``term``."""
        known = self._numbers.get(term)
        if known is None:
            known = self._numbers[term] = len(self.all)
            self.all.append(term)
            self._patterns.setdefault((term.key, term.parts), []).append(known)
            if term.key[0] == "reduce":
                self._reductions.setdefault((term.reducer, term.parts[0]), []).append(known)
            if term.key[0] == "extended":
                self._extensions.setdefault(term.parts, []).append(known)
            if term.key[0] == "merged":
                self.has_merges = True
                self._merges.setdefault(term.parts[0], []).append(known)
        return known

    def known(self, term: Term) -> int | None:
        """Return the number of ``term``, where the table has it."""
        return self._numbers.get(term)

    def patterns(self, key: Key, parts: tuple[int, ...]) -> Sequence[int]:
        """Return the terms that compute ``key`` of ``parts``, the oldest first."""
        return self._patterns.get((key, parts), ())

    def reductions(self, reducer: Hashable, part: int) -> Sequence[int]:
        """Return the terms that reduce ``part``, the oldest first."""
        return self._reductions.get((reducer, part), ())

    def extensions(self, part: int, value: int) -> Sequence[int]:
        """Return the terms that go on as the constant ``value`` beyond bounds of ``part``."""
        return self._extensions.get((part, value), ())

    def merges(self, part: int) -> Sequence[int]:
        """Return the terms that merge two indices of ``part``."""
        return self._merges.get(part, ())

    def constant(self, element: str, value: Any) -> int:
        """Return a constant, of rank 0 where ``value`` is a scalar."""
        key = ("constant", element, value.shape, value.tobytes())
        number = self._constants.get(key)
        if number is None:
            number = self._constants[key] = self.make(Term(key, (), value.ndim))
            self.values[number] = value
        return number

    def splat(self, number: int) -> Any:
        """Return the scalar of a constant of rank 0; None for other terms."""
        return self.values.get(number) if self.all[number].rank == 0 else None

    def set_of(self, boxes: Any) -> int:
        """Return the number of a set of boxes, [box, lows and highs] in order."""
        key = (boxes.shape, boxes.tobytes())
        number = self._set_numbers.get(key)
        if number is None:
            number = self._set_numbers[key] = len(self.sets)
            self.sets.append(boxes)
        return number
