"""Variables are eliminated one after another, exactly, as long as the tables that this makes stay small.

Problem: the least sum of tables, and an assignment that has it (min-sum elimination; Dechter 1999, "Bucket
elimination"). A variable is eliminated by adding up the tables that it stands in and taking the least over it; what is
left is one table over its neighbours. Eliminated variables get their values in reverse order: each the best in its
tables, where its neighbours stand at theirs.

Order: the variable whose table is smallest is next. The order and the sizes follow from the graph alone, so that they
are known before any table is made (``elimination_order``).

Example: the chain x - y - z of three values each. x goes with a table of 9 entries and leaves one over y, then y, then
z: the sum is solved after 9 + 9 + 3 entries, where enumeration looks at 27.

Complexity: O(entries of the tables made), which is what ``elimination_order`` limits.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterable, Mapping, Sequence
from math import prod

from shardpass.planning.solve.network import Costs, Network, Table, aligned


def elimination_order(network: Network, limit: int, degree: int) -> tuple[list[int], bool]:
    """Return the variables to eliminate, in order, and whether these are all.

    ``limit``: entries of the greatest table that may be made. ``degree``: neighbours that a variable may have.
    """
    sizes, near = network.sizes, _neighbours(network)
    gone: list[int] = []

    def made(variable: int) -> int:
        return prod([sizes[other] for other in near[variable]], start=sizes[variable])

    queue = [(made(variable), variable) for variable in near]
    heapq.heapify(queue)
    while queue:
        size, variable = heapq.heappop(queue)
        if variable not in near or size > limit:
            continue
        now = made(variable)
        if now != size:  # its neighbours changed since it was queued
            heapq.heappush(queue, (now, variable))
            continue
        if len(near[variable]) > degree:
            continue  # queued again once a neighbour goes
        others = near.pop(variable)
        gone.append(variable)
        for other in others:
            near[other] |= others
            near[other] -= {other, variable}
        for other in others:
            heapq.heappush(queue, (made(other), other))
    return gone, not near


def _neighbours(network: Network) -> dict[int, set[int]]:
    near: dict[int, set[int]] = {variable: set() for variable in network.sizes}
    for table in network.tables:
        for variable in table.variables:
            near[variable].update(table.variables)
    for variable, others in near.items():
        others.discard(variable)
    return near


class Elimination:
    """A network from which variables are eliminated: ``left`` is what remains, and ``values`` recovers the others."""

    def __init__(self, network: Network, order: Sequence[int]) -> None:
        self._gone: list[tuple[int, list[Table]]] = []
        standing: dict[int, dict[int, Table]] = {variable: {} for variable in network.sizes}
        base = network.base
        for number, table in enumerate(network.tables):
            for variable in table.variables:
                standing[variable][number] = table
        number = len(network.tables)
        for variable in order:
            tables = standing.pop(variable)
            for known, table in tables.items():
                for other in table.variables:
                    if other != variable:
                        del standing[other][known]
            self._gone.append((variable, list(tables.values())))
            if not tables:
                continue
            near = sorted({other for table in tables.values() for other in table.variables} - {variable})
            scope = (variable, *near)
            costs = _least(scope, tables.values())
            if not near:
                base += float(costs)
                continue
            number += 1
            for other in near:
                standing[other][number] = Table(tuple(near), costs)
        sizes = {variable: network.sizes[variable] for variable in standing}
        kept = {known: table for tables in standing.values() for known, table in tables.items()}
        reduced = Network.of(kept.values(), sizes)
        self.left = Network(reduced.sizes, reduced.tables, reduced.base + base)

    def values(self, chosen: Mapping[int, int]) -> dict[int, int]:
        """Return the best values of all variables, given ``chosen`` values of the remaining ones."""
        values = dict(chosen)
        for variable, tables in reversed(self._gone):
            costs = _sum([_along(variable, table, values) for table in tables]) if tables else None
            values[variable] = 0 if costs is None else int(costs.argmin())
        return values


def _least(scope: Sequence[int], tables: Iterable[Table]) -> Costs:
    """Return the minimum over the first variable of ``scope`` of the sum of ``tables``."""
    costs: Costs = _sum([aligned(table, scope) for table in tables]).min(axis=0)
    return costs


def _along(variable: int, table: Table, values: Mapping[int, int]) -> Costs:
    """Return the costs of all values of ``variable`` with the other variables at ``values``."""
    return table.costs[tuple([slice(None) if one == variable else values[one] for one in table.variables])]


def _sum(pieces: Sequence[Costs]) -> Costs:
    small = sorted(pieces, key=lambda piece: piece.size)
    return sum(small[1:], start=small[0])
