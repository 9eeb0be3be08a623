"""Prices of reshards for tables: a formula for all pairs of splits, and the planned price where it decides anything.

Problem: a table has the price of every pair of splits of an array, thousands in a program, and to plan a redistribution
for each would take longer than all else. The formula (``distances``) is a lower bound that is exact for most pairs.

So the pairs of a solution are planned, as the plan of the program would have to do anyway, and where one costs more
than the formula says, its entries are raised, with those that the next solution would take instead, and the sum is
solved again. All other entries are lower bounds: a solution whose own entries are all planned is the best of the
exactly priced tables (lazy evaluation, as in shortest paths with costly edges; Dellin and Srinivasa 2016), and a bound
of any round is a bound of these.

Example: from x to y along one dimension the formula says 1 MiB and the planner receives 1.2 MiB in two collectives. The
first solution takes that pair; the second, with the raised entry, gathers over x before, for 1.1 MiB.

State: one matrix of prices for each type and pair of lists of splits, which all tables of the program share. What is
planned raises the entries of all matrices of the type.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from shardpass.ops.splits.factors import DimAxes
from shardpass.ops.splits.prime_mesh import PrimeMesh
from shardpass.planning.options.partial import matched, over, split_of
from shardpass.planning.price.clock import Clock
from shardpass.planning.price.distances import Distances
from shardpass.planning.solve.network import Costs
from shardpass.program.program import Array

ALIKE = 1e-9  # of a price: a smaller difference is rounding


class Moves:
    """The seconds of one reshard as [sources, targets], which ``plan`` makes exact pair by pair.

    ``alike``: the matrices of all reshards of this type, which ``plan`` raises, too.
    """

    def __init__(
        self,
        clock: Clock,
        array: Array,
        mesh: PrimeMesh,
        sources: Sequence[DimAxes],
        targets: Sequence[DimAxes],
        costs: Costs,
        alike: list[Moves],
    ) -> None:
        self.clock, self.array, self.mesh, self.sources, self.targets = clock, array, mesh, sources, targets
        self.costs = costs
        self.copied: Costs | float = 0.0  # of these, what devices copy by themselves, of pairs that are planned
        self.changes = 0  # how often entries were raised
        self.alike = alike
        self._planned: set[tuple[DimAxes, DimAxes]] = set()

    def plan(self, source: int, target: int) -> None:
        """Plan the redistribution of one pair of splits, and raise all entries of the pair if it costs more.

        Then the pairs of its row and its column that cost as much by the formula are planned, too: where the gather of
        one dimension is raised, the next solution would gather another one.
        """
        formula = self.costs[source, target]
        if self._plan(source, target):
            row, column = (
                np.abs(side - formula) <= ALIKE * formula for side in (self.costs[source], self.costs[:, target])
            )
            for other in np.flatnonzero(row).tolist():
                self._plan(source, other)
            for other in np.flatnonzero(column).tolist():
                self._plan(other, target)

    def _plan(self, source: int, target: int) -> bool:
        """Plan one pair; return whether it costs more than the formula says."""
        ends = self.sources[source], self.targets[target]
        if ends in self._planned or ends[0] == ends[1] or over(ends[0]):
            return False
        self._planned.add(ends)
        pair = self.mesh.sharding(split_of(ends[0])), self.mesh.sharding(split_of(ends[1]))
        price = self.clock.move(self.array, *pair, self.mesh)
        if price <= self.costs[source, target] * (1 + ALIKE):
            return False
        copied = self.clock.copies(self.array, *pair, self.mesh)
        for moves in self.alike:
            moves._raise(ends, price, copied)
        return True

    def _raise(self, ends: tuple[DimAxes, DimAxes], price: float, copied: float) -> None:
        sides = zip((self.sources, self.targets), ends, strict=True)
        rows, columns = ([place for place, one in enumerate(side) if one == end] for side, end in sides)
        at = np.ix_(rows, columns)
        low = self.costs[at] < price
        if low.any():
            if not self.changes:
                self.costs = self.costs.copy()  # the formula's, which other programs share
                self.copied = np.zeros_like(self.costs)
            self.costs[at] = np.where(low, price, self.costs[at])
            self.copied[at] = np.where(low, copied, self.copied[at])  # type: ignore[index]
            self.changes += 1


class Reshards:
    """Computes the matrices of resharding costs of one program, and caches each by array type, sources and targets."""

    def __init__(self, distances: Distances, clock: Clock) -> None:
        self.distances, self.clock = distances, clock
        self._known: dict[Any, Moves] = {}
        self._alike: dict[Any, list[Moves]] = {}  # by the type

    @property
    def every(self) -> Iterable[Moves]:
        return self._known.values()

    def of(
        self,
        array: Array,
        mesh: PrimeMesh,
        sources: Sequence[DimAxes],
        targets: Sequence[DimAxes],
        *,
        made: bool = False,
    ) -> Moves:
        """Return the costs of resharding ``array`` from each of ``sources`` (rows) to each of ``targets`` (columns).

        ``made``: whether ``sources`` are the splits in which an op produces the array.
        """
        key = (array, mesh, tuple(sources), tuple(targets), made)
        known = self._known.get(key)
        if known is None:
            costs = self.distances.of(array, mesh, [*map(split_of, sources)], [*map(split_of, targets)])
            costs = matched(costs, sources, targets, made=made)
            alike = self._alike.setdefault((array, mesh), [])
            known = self._known[key] = Moves(self.clock, array, mesh, sources, targets, costs, alike)
            alike.append(known)
        return known
