"""The cheapest assignment of a sum of small tables, by eliminating one variable after another.

Problem: variables with few values each, and a cost that is a sum of tables, each over few of the variables. The least
sum, and an assignment that has it (min-sum elimination; Dechter 1999, "Bucket elimination").

State: the tables that are left. A variable is eliminated by adding up the tables that it stands in and taking the
least over it; what is left is one table over its neighbours, and beside it the value that is best for each of their
assignments. The variable whose table becomes smallest is next.

Cases:

1. No table grows above ``limit`` entries: the result is exact.
2. All tables would: of the neighbours of the next variable, the one with most neighbours is held at the value that the
   caller gives as its present one, and elimination goes on. Variables without a present value are never held.

Invariant: the result is a least sum of those in which the ``held`` variables have their present values.
Complexity: O(variables x limit) at worst; for a chain, O(variables x values^2).
"""

from __future__ import annotations

import heapq
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from math import prod
from typing import Any

import numpy as np

Costs = np.ndarray[Any, Any]

LIMIT = 1 << 18  # entries of one table
LARGE = 1 << 12  # entries of a table whose least values are found one value after another: NumPy walks it by rows


@dataclass(frozen=True, slots=True)
class Table:
    """Costs by the values of ``variables``, one dimension each, in their order; no variable stands twice."""

    variables: tuple[int, ...]
    costs: Costs


@dataclass(frozen=True)
class Least:
    """The best value of each variable; those that were ``held`` were not chosen."""

    values: Mapping[int, int]
    held: frozenset[int]


def least(tables: Sequence[Table], present: Mapping[int, int], limit: int = LIMIT) -> Least:
    """The assignment with the least sum of ``tables``. ``present``: values at which variables may be held."""
    return _Elimination(tables, present, limit).run()


@dataclass
class _Elimination:
    tables: Sequence[Table]
    present: Mapping[int, int]
    limit: int
    sizes: dict[int, int] = field(default_factory=dict)
    standing: dict[int, dict[int, Table]] = field(default_factory=dict)  # by variable, its tables by their number
    near: dict[int, set[int]] = field(default_factory=dict)  # by variable, those that stand in a table with it
    count: int = 0
    best: list[tuple[int, tuple[int, ...], Costs]] = field(default_factory=list)  # variable, neighbours, best values
    held: dict[int, int] = field(default_factory=dict)

    def run(self) -> Least:
        for table in self.tables:
            for variable, size in zip(table.variables, table.costs.shape, strict=True):
                self.sizes[variable] = size
                self.standing.setdefault(variable, {})
                self.near.setdefault(variable, set()).update(table.variables)
            self._add(table)
        for variable, others in self.near.items():
            others.discard(variable)
        queue = [(self._size(variable), variable) for variable in self.standing]
        heapq.heapify(queue)
        while queue:
            size, variable = heapq.heappop(queue)
            if variable not in self.standing:
                continue
            now = self._size(variable)
            if now > size:  # its neighbours changed since it was queued
                heapq.heappush(queue, (now, variable))
                continue
            near = self._neighbours(variable)
            held = [one for one in (*near, variable) if one in self.present] if now > self.limit else []
            if held:
                self._hold(max(held, key=lambda one: (len(self._neighbours(one)), one)))
                heapq.heappush(queue, (0, variable))
                continue
            self._eliminate(variable, near)
            for other in near:
                heapq.heappush(queue, (self._size(other), other))
        return Least(self._values(), frozenset(self.held))

    def _add(self, table: Table) -> None:
        self.count += 1
        for variable in table.variables:
            self.standing[variable][self.count] = table

    def _remove(self, variable: int) -> list[Table]:
        """All tables of ``variable``, which are gone then."""
        found = dict(self.standing[variable])
        for number, table in found.items():
            for other in table.variables:
                del self.standing[other][number]
        return list(found.values())

    def _neighbours(self, variable: int) -> tuple[int, ...]:
        return tuple(sorted(self.near[variable]))

    def _size(self, variable: int) -> int:
        sizes = self.sizes
        return prod([sizes[other] for other in self.near[variable]], start=sizes[variable])

    def _eliminate(self, variable: int, near: tuple[int, ...]) -> None:
        total = _sum(self.standing[variable].values(), (variable, *near))
        self._remove(variable)
        del self.standing[variable]
        for other in near:
            self.near[other].update(near)
            self.near[other] -= {other, variable}
        choice, costs = _best(total)
        self.best.append((variable, near, choice))
        if near:
            self._add(Table(near, costs))

    def _hold(self, variable: int) -> None:
        value = self.held[variable] = self.present[variable]
        tables = self._remove(variable)
        del self.standing[variable]
        for other in self.near[variable]:
            self.near[other].discard(variable)
        for table in tables:
            place = table.variables.index(variable)
            left = table.variables[:place] + table.variables[place + 1 :]
            if left:
                self._add(Table(left, np.take(table.costs, value, axis=place)))

    def _values(self) -> dict[int, int]:
        values = dict(self.held)
        for variable, near, choice in reversed(self.best):
            values[variable] = int(choice[tuple(values[other] for other in near)])
        return values


def _sum(tables: Iterable[Table], order: tuple[int, ...]) -> Costs:
    """The sum of tables, which have all variables of ``order`` among them, as one over these, in this order."""
    total: Costs | None = None
    for table in tables:
        places = [order.index(variable) for variable in table.variables]
        turned = table.costs
        if sorted(places) != places:
            turned = turned.transpose(sorted(range(len(places)), key=places.__getitem__))
        shape = [1] * len(order)
        for place, size in zip(places, table.costs.shape, strict=True):
            shape[place] = size
        one = turned.reshape(shape)
        total = one if total is None else total + one
    assert total is not None
    return total


def _best(total: Costs) -> tuple[Costs, Costs]:
    """The first of the best values of the first variable, and its cost, for each assignment of the others."""
    if total.size < LARGE:
        return total.argmin(axis=0), total.min(axis=0)
    choice, costs = np.zeros(total.shape[1:], np.int32), total[0].copy()
    for value in range(1, len(total)):
        np.copyto(choice, value, where=total[value] < costs)
        np.minimum(costs, total[value], out=costs)
    return choice, costs
