"""Whether two terms are equal by laws that floats keep only in part: ``x + 0 = x``, and ``-(a + b) = -a - b``.

Terms keep a 0 in a sum, and the negative of a sum, so that equal numbers are equal results. Where two numbers differ,
their terms are compared from the outside in. What is left at the first operands that are of two forms is made again
with zeros left out and negatives within sums, and each op whose term lost something so used the law.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from shardpass.proving.relations.laws import NEGATED_SUM, ZERO, Laws
from shardpass.proving.scalars.choices import chosen
from shardpass.proving.scalars.constants import zeros
from shardpass.proving.scalars.elementwise import negated
from shardpass.proving.scalars.lists import one
from shardpass.proving.scalars.rows import CHOICE, FUNCTION, segments
from shardpass.proving.scalars.table import TERM, Scalars


class Relaxed:
    """The comparisons of one table, each made once."""

    def __init__(self, table: Scalars, laws: Laws) -> None:
        self.table, self.laws = table, laws
        self._forms: dict[int, int] = {}
        self._compared: dict[tuple[int, int], bool] = {}

    def same(self, x: int, y: int) -> bool:
        """Return whether the terms ``x`` and ``y`` are equal by these laws."""
        todo = [(x, y)]
        while todo:
            pair = todo.pop()
            if pair[0] == pair[1] or self._compared.get(pair):
                continue
            self.table.spend(TERM)
            (key, first), (other, second) = (self.table.terms[n] for n in pair)
            alike = key == other and len(first) == len(second) > 0 and not _is_list(key)
            if not alike and self._form(pair[0]) != self._form(pair[1]):
                return False
            self._compared[pair] = True
            todo += zip(first, second, strict=True) if alike else ()
        return True

    def _form(self, number: int) -> int:
        """Return the term without zeros in sums and with negatives moved inside, recursively."""
        todo = [number]
        while todo:
            at = todo[-1]
            self.table.spend(TERM)
            missing = [] if at in self._forms else [n for n in self._inner(at) if n not in self._forms]
            todo += missing
            if not missing:
                todo.pop()
                if at not in self._forms:
                    self._forms[at] = self._made(at)
        return self._forms[number]

    def _inner(self, number: int) -> tuple[int, ...]:
        key, operands = self.table.terms[number]
        if self.table.head_of(number) in (CHOICE, FUNCTION):
            return (int(key[1]), *operands)
        return tuple(operands)

    def _made(self, number: int) -> int:
        table, (key, operands) = self.table, self.table.terms[number]
        inner = [self._forms[n] for n in operands]
        if _is_list(key) and table.head_of(number) > FUNCTION:
            return self._sum(number, key, inner)
        if key[:1] == ("negated",) and table.head_of(inner[0]) == table.head(("add", key[1])):
            self.laws.allows(NEGATED_SUM, table.origin(number))
            return int(negated(table, key[1], np.array([inner[0]], np.int64), within=True)[0])
        if tuple(inner) == tuple(operands):
            return number
        if table.head_of(number) == CHOICE and self._forms[int(key[1])] == int(key[1]):
            base, rows = segments(table, number)
            return chosen(table, base, [(low, self._forms[child]) for low, child in rows])
        if table.head_of(number) in (CHOICE, FUNCTION) or number in table.ranked:
            return number
        return table.one(key, tuple(inner), table.head_of(number))

    def _sum(self, number: int, key: tuple[Any, ...], inner: list[int]) -> int:
        name, element = key
        kept = inner
        if name == "add":
            none = set(zeros(self.table, element).tolist())
            kept = [n for n in inner if n not in none] or inner[:1]
            if len(kept) < len(inner):
                self.laws.allows(ZERO, self.table.origin(number))
        if kept == list(self.table.terms[number][1]):
            return number
        return one(self.table, name, element, kept)


def _is_list(key: Any) -> bool:
    return isinstance(key, tuple) and len(key) == 2 and key[0] in ("add", "multiply", "maximum", "minimum", "and", "or",
                                                                    "xor")  # fmt: skip
