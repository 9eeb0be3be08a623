"""The cheapest assignment of a sum of small tables, by eliminating one variable after another.

Problem: variables with few values each, and a cost that is a sum of tables, each over few of the variables. The least
sum, and an assignment that has it (min-sum elimination; Dechter 1999, "Bucket elimination").

State: the tables that are left. A variable is eliminated by adding up the tables that it stands in and taking the
least over it; what is left is one table over its neighbours. The variable whose table becomes smallest is next. When
all are gone they get their values in reverse order: each the one that is best in its tables, where its neighbours stand
at theirs.

Cases:

1. No table grows above ``limit`` entries: the result is exact.
2. All tables would: one of the next variable and its neighbours is held at its present value, and elimination goes on.
   It is the one that was held least often before (``least_sum`` asks again and again), and of these the one whose own
   table would be largest. Variables without a present value are never held.

Invariant: the result is a least sum of those in which the ``held`` variables have their present values.
Complexity: O(variables x limit) at worst; for a chain, O(variables x values^2).
"""

from __future__ import annotations

import heapq
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import prod
from typing import Any

import numpy as np

Costs = np.ndarray[Any, Any]

LIMIT = 1 << 18  # entries of one table, where nobody says another


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


def least(
    tables: Sequence[Table], present: Mapping[int, int], limit: int = LIMIT, often: Mapping[int, int] | None = None
) -> Least:
    """The assignment with the least sum of ``tables``.

    ``present``: values at which variables may be held; ``often``: how often each was held before.
    """
    elimination = Elimination(tables)
    elimination.run(limit, present, often or {})
    return Least(elimination.values({}), frozenset(elimination.held))


class Elimination:
    """The tables that are left, and what was eliminated."""

    def __init__(self, tables: Sequence[Table]) -> None:
        self.held: dict[int, int] = {}
        self._sizes: dict[int, int] = {}
        self._standing: dict[int, dict[int, Table]] = {}  # by variable, its tables by their number
        self._near: dict[int, set[int]] = {}  # by variable, those that stand in a table with it
        self._count = 0
        self._gone: list[tuple[int, list[Table]]] = []  # eliminated variables, with the tables that they stood in
        for table in tables:
            for variable, size in zip(table.variables, table.costs.shape, strict=True):
                self._sizes[variable] = size
                self._standing.setdefault(variable, {})
                self._near.setdefault(variable, set()).update(table.variables)
            self._add(table)
        for variable, others in self._near.items():
            others.discard(variable)

    def run(self, limit: int, present: Mapping[int, int] | None = None, often: Mapping[int, int] | None = None) -> None:
        """Eliminates all variables, and holds some of ``present``; without ``present`` ends where a table would grow
        above ``limit``.
        """
        queue = [(self._size(variable), variable) for variable in self._standing]
        heapq.heapify(queue)
        while queue:
            size, variable = heapq.heappop(queue)
            if variable not in self._standing:
                continue
            now = self._size(variable)
            if now > size:  # its neighbours changed since it was queued
                heapq.heappush(queue, (now, variable))
                continue
            near = self._neighbours(variable)
            if now > limit:
                if present is None:
                    return
                held = [one for one in (*near, variable) if one in present]
                if held:
                    times = often or {}
                    chosen = max(held, key=lambda one: (-times.get(one, 0), self._size(one), one))
                    self._hold(chosen, present[chosen])
                    heapq.heappush(queue, (0, variable))
                    continue
            self._eliminate(variable, near)
            for other in near:
                heapq.heappush(queue, (self._size(other), other))

    @property
    def left(self) -> list[Table]:
        """The tables of the variables that were not eliminated."""
        return list({number: table for each in self._standing.values() for number, table in each.items()}.values())

    def values(self, chosen: Mapping[int, int]) -> dict[int, int]:
        """The best values of all variables, where those that are left have the ``chosen`` ones."""
        values = {**self.held, **chosen}
        for variable, tables in reversed(self._gone):
            values[variable] = int(_sum([_along(variable, table, values) for table in tables]).argmin())
        return values

    def _add(self, table: Table) -> None:
        self._count += 1
        for variable in table.variables:
            self._standing[variable][self._count] = table

    def _remove(self, variable: int) -> list[Table]:
        """All tables of ``variable``, which are gone then."""
        found = dict(self._standing[variable])
        for number, table in found.items():
            for other in table.variables:
                del self._standing[other][number]
        return list(found.values())

    def _neighbours(self, variable: int) -> tuple[int, ...]:
        return tuple(sorted(self._near[variable]))

    def _size(self, variable: int) -> int:
        sizes = self._sizes
        return prod([sizes[other] for other in self._near[variable]], start=sizes[variable])

    def _eliminate(self, variable: int, near: tuple[int, ...]) -> None:
        tables = self._remove(variable)
        del self._standing[variable]
        self._gone.append((variable, tables))
        for other in near:
            self._near[other].update(near)
            self._near[other] -= {other, variable}
        if near:
            self._add(Table(near, _least_along(variable, near, tables)))

    def _hold(self, variable: int, value: int) -> None:
        self.held[variable] = value
        tables = self._remove(variable)
        del self._standing[variable]
        for other in self._near[variable]:
            self._near[other].discard(variable)
        for table in tables:
            place = table.variables.index(variable)
            left = table.variables[:place] + table.variables[place + 1 :]
            if left:
                self._add(Table(left, np.take(table.costs, value, axis=place)))


def _along(variable: int, table: Table, values: Mapping[int, int]) -> Costs:
    """The costs of all values of ``variable`` where the others have ``values``."""
    return table.costs[tuple([slice(None) if one == variable else values[one] for one in table.variables])]


def _least_along(variable: int, near: tuple[int, ...], tables: Sequence[Table]) -> Costs:
    """The least sum of ``tables`` over ``variable``, as a table over ``near``."""
    aligned = sorted([_aligned(table, (variable, *near)) for table in tables], key=np.size)
    return np.asarray(_sum(aligned).min(axis=0))


def _sum(pieces: Sequence[Costs]) -> Costs:
    return sum(pieces[1:], start=pieces[0])


def _aligned(table: Table, order: tuple[int, ...]) -> Costs:
    """The costs of a table with a dimension for each variable of ``order``, of size 1 for those that it lacks."""
    places = [order.index(variable) for variable in table.variables]
    turned = table.costs
    if sorted(places) != places:
        turned = turned.transpose(sorted(range(len(places)), key=places.__getitem__))
    shape = [1] * len(order)
    for place, size in zip(places, table.costs.shape, strict=True):
        shape[place] = size
    return turned.reshape(shape)
