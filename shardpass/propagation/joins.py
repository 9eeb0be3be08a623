"""A cache of outcomes of steps, which programs on meshes of the same sizes share.

Problem: the layers of a network are equal steps in equal states, and a search goes through the same states again and
again. What a step changes follows from its rule, which of its values stand twice, and of each value the facts and the
split (``join``), so each such case is joined once: in one program, and in the next, where a layer is as it was.

State: a number for each rule with its frozen places (``kind``) and for each facts with a split (``state``), and
outcomes by these numbers. Facts are one object for all that are equal, and know the numbers of their splits. Where the
table grew large, the next program begins a new one.

Complexity: one lookup of a tuple of small numbers a step.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from itertools import count

from shardpass.ops.splits.factors import DimAxes, Rule
from shardpass.propagation.join import Facts, Outcome

MOST_OUTCOMES = 1 << 15  # that are kept from program to program

_numbers = count()  # of all tables


class Joins:
    """The table of one process for meshes of the same sizes."""

    def __init__(self) -> None:
        self.outcomes: dict[tuple[int, ...], Outcome] = {}
        self._facts: dict[Facts, Facts] = {}
        self._kinds: dict[object, tuple[int, Rule]] = {}  # which keeps the rule, and with it the identity

    def facts(self, facts: Facts) -> Facts:
        """Return the shared object for equal facts."""
        return self._facts.setdefault(facts, facts)

    def state(self, facts: Facts, dims: DimAxes) -> int:
        """Return the number of ``facts``, an object of this table, with the split ``dims``."""
        number = facts.states.get(dims)
        return facts.states.setdefault(dims, next(_numbers)) if number is None else number

    def kind(self, rule: Rule, frozen: frozenset[int], values: Sequence[int]) -> int:
        """Return a number, equal for steps with the same rule (shared by equal ops) and the same repeated values."""
        same = () if len(set(values)) == len(values) else tuple(map(values.index, values))
        key = (id(rule), frozen, same)
        numbered = self._kinds.get(key)
        return (self._kinds.setdefault(key, (next(_numbers), rule)) if numbered is None else numbered)[0]


def joins(sizes: tuple[int, ...]) -> Joins:
    """Return the cache of joined splits for meshes whose sub-axes have ``sizes``."""
    cell = _kept(sizes)
    if len(cell[0].outcomes) > MOST_OUTCOMES:
        cell[0] = Joins()
    return cell[0]


@lru_cache(maxsize=8)
def _kept(sizes: tuple[int, ...]) -> list[Joins]:
    return [Joins()]
