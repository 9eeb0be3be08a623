"""The table of scalar terms: one number for each function of the whole program's arguments that gives one element.

Equal numbers mean equal terms; terms that are equal for a reason that the table does not know have two numbers, which
costs a proof and never makes one. Known integers have a number of their own for each value, so that positions, masks
and tables are exact. Sums, products, maxima and minima are kept as sorted lists of what they are of (``lists.py``),
choices by integers that the program computes as tables of ranges (``choices.py``).

Cost: a call on n rows sorts them once, and looks up each different row. Each rule counts the work that it does with
``spend``: one for an element that NumPy sorts or a list's term, ``TERM`` for what Python does for one term. A walk
that has spent ``WORK`` ends, after at most half a minute of processor time.
"""

from __future__ import annotations

from collections.abc import Container, Hashable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from shardpass.proving.relations.laws import Laws
from shardpass.proving.relations.pieces import Bools, Ints

MOST = 2**20  # elements of one value on all devices, and products of one op
WORK = 3 * 2**26  # what a proof of the elements may spend
TERM = 32  # for one term, in elements of an array
CHOICE, FUNCTION = 1, 2  # heads: of terms, or of integers some of which are t + c


class TooLarge(Exception):
    """The walk has spent its work."""


class ManyElements(Exception):
    """A value has more elements than are worth a proof of each."""


@dataclass(frozen=True, slots=True)
class Order:
    """The order of elements of type ``element``."""

    element: str
    op: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Ranked:
    """The label of the element that is ``rank``-th from the first in ``order``; see ``ranks.py``."""

    order: Order
    rank: int
    values: tuple[int, ...]
    labels: tuple[int, ...]


class Scalars:
    """Numbers of terms. ``kind`` and ``known``: of each number, as arrays."""

    def __init__(self, laws: Laws | None = None) -> None:
        self.laws = laws or Laws()
        self.at: Any = None  # the op that is walked
        self._origins: list[Any] = []  # of each term the op that first made it
        self.terms: list[tuple[Any, ...]] = []  # (key, operands)
        self._numbers: dict[Hashable, int] = {}
        self._known = np.zeros(2**12, bool)
        self._value = np.zeros(2**12, np.int64)
        self._head = np.zeros(2**12, np.int64)  # of lists: which reducer; of choices: 1 or 2
        self._heads: dict[Hashable, int] = {}
        self.ranges: dict[int, tuple[int, int]] = {}  # of integers that choose: which numbers [lo, hi) they may be
        self.constants: dict[Hashable, Ints] = {}  # the constants of a type that a reduction may leave out
        self.ranked: dict[int, Ranked] = {}  # terms of ``ranks.py``
        self.extremes: dict[tuple[Order, tuple[int, ...]], int] = {}  # the greatest element of a row, and the least
        self.chosen: dict[tuple[int, tuple[tuple[int, int], ...]], int] = {}  # choices by their integer and rows
        self.work = 0

    def spend(self, count: int) -> None:
        self.work += count
        if self.work > WORK:
            raise TooLarge

    def head(self, name: Hashable) -> int:
        """Return the number of a reducer; 1 and 2 are choices."""
        return self._heads.setdefault(name, len(self._heads) + 3)

    def heads(self, ids: Ints) -> Ints:
        return self._head[ids]

    def _new(self, key: Hashable, term: tuple[Any, ...]) -> int:
        number = self._numbers[key] = len(self.terms)
        self.terms.append(term)
        self._origins.append(self.at)
        if number >= len(self._known):
            for name in ("_known", "_value", "_head"):
                old = getattr(self, name)
                setattr(self, name, np.concatenate([old, np.zeros_like(old)]))
        return number

    def one(self, key: Hashable, operands: tuple[int, ...] = (), head: int = 0) -> int:
        """Return the number of the term ``key`` of ``operands``."""
        whole = (key, operands)
        result = self._numbers.get(whole)
        if result is None:
            result = self._new(whole, whole)
            self._head[result] = head
        return result

    def fresh(self, name: Hashable, shape: Sequence[int]) -> Ints:
        """Number unknown elements; ``name`` identifies their array."""
        count = int(np.prod(shape, dtype=np.int64))
        if count > MOST:
            raise ManyElements
        self.spend(16 * count)
        return np.array([self.one((name, i)) for i in range(count)], np.int64).reshape(shape)

    def rows(self, key: Hashable, columns: Sequence[Any]) -> Ints:
        """Return the term ``key`` of the operands in ``columns``, arrays of one shape, at each position."""
        shape = columns[0].shape
        flat = [np.asarray(c).ravel() for c in columns]
        count = len(flat[0])
        self.spend((count + TERM) * len(columns))
        if count == 0:
            return np.zeros(shape, np.int64)
        first, inverse = distinct(flat)
        self.spend(16 * len(first))
        picked = np.stack([c[first] for c in flat], axis=1).tolist()
        made = np.array([self.one(key, tuple(row)) for row in picked], np.int64)
        return made[inverse].reshape(shape)

    def below(self, numbers: Iterable[int], known: Container[int] = ()) -> set[int]:
        """Return ``numbers`` and all terms from which they are made, except ``known`` ones."""
        todo = list(numbers)
        seen = set(todo)
        while todo:
            key, operands = self.terms[at := todo.pop()]
            chosen = (int(key[1]),) if self._head[at] in (CHOICE, FUNCTION) else ()
            new = {n for n in (*chosen, *operands) if n not in seen and n not in known}
            seen |= new
            todo += new
        return seen

    # ------------------------------------------------------------ known integers

    def integer(self, value: int) -> int:
        result = self.one(("integer", int(value)))
        self._known[result], self._value[result] = True, value
        return result

    def integers(self, values: Ints) -> Ints:
        unique, inverse = np.unique(values, return_inverse=True)
        self.spend(values.size)
        return np.array([self.integer(v) for v in unique.tolist()], np.int64)[inverse].reshape(values.shape)

    def origin(self, number: int) -> Any:
        """Return the op that first made a term; None for arguments."""
        return self._origins[number]

    def is_known(self, number: int) -> bool:
        return bool(self._known[number])

    def number(self, number: int) -> int:
        """Return the integer of a known term."""
        return int(self._value[number])

    def head_of(self, number: int) -> int:
        return int(self._head[number])

    def known(self, ids: Ints) -> Any:
        return self._known[ids]

    def values(self, ids: Ints) -> Ints:
        """Return the integers at ``ids``, which are all known."""
        return self._value[ids]


def among(ids: Ints, few: Ints) -> Bools:
    """Return which of ``ids`` are one of ``few``; for one or two numbers faster than ``np.isin``."""
    result = np.zeros(ids.shape, bool)
    for number in few.tolist():
        result |= ids == number
    return result


def distinct(columns: Sequence[Ints]) -> tuple[Ints, Ints]:
    """Return the index of one of each different row, and for every row which of these it is."""
    _, first, code = np.unique(columns[0], return_index=True, return_inverse=True)
    code = code.ravel()
    for column in columns[1:]:
        values, inverse = np.unique(column, return_inverse=True)
        _, first, code = np.unique(
            code * np.int64(len(values)) + inverse.ravel(), return_index=True, return_inverse=True
        )
        code = code.ravel()
    return first, code
