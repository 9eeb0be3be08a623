"""Solves the tables of one program (``tables``): the splits of the least sum, with a bound below all sums.

State: the tables. The reshards of a solution are planned, which may cost more than the tables have, and raise entries.

1. Assignments of one price: small tables prefer the one that holds least, and of these the nearest to the present one.
2. Where planning raised entries, the tables are solved again, until the solution is within ``CLOSE`` of the bound or
   ``ENTRIES`` are used up.
3. Ways of one price: an op takes the one that splits its work the most (``equal_ways``); its reshards are planned, too.

Example on data=2: an argument of which every reader takes a tile may be whole or split at the same price, as a tile of
the whole is cut without a collective. By case 1 the argument is split.

Complexity: that of ``solve``, a few times.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

import numpy as np

from shardpass.ops.splits.factors import Axes, DimAxes
from shardpass.planning.options.counts import Counts
from shardpass.planning.options.equal_ways import most_split
from shardpass.planning.options.partial import over, split_of
from shardpass.planning.options.tables import Place, ProgramTables, Values
from shardpass.planning.solve.network import Costs, Network, Table, total
from shardpass.planning.solve.result import Result
from shardpass.planning.solve.solve import Budget, solve
from shardpass.program.shardings import Factors
from shardpass.propagation.program import Propagated

ENTRIES = 1 << 26  # of tables, in all rounds in which reshards of a solution are planned, unless fewer are given
RESIDENT = 1e-5  # of the price, for all arguments when they are whole: among equals, what holds least
CLOSE = 5e-4  # of the bound: an assignment that costs no more above it is not sought again
RESCALED = 0.1  # of a price: a smaller change changes no tie
CHANGE = 1e-6  # of the price, where all values change: among equals that hold as much, the nearest


class Solution(NamedTuple):
    """New splits of values of the engine, with their price in the tables and a lower bound of all prices."""

    splits: dict[int, DimAxes]
    result: Result
    ways: dict[int, Factors]
    partial: Mapping[int, Axes] = {}  # of values of the engine that wait, the axes that they are partial over
    copies: Mapping[int, DimAxes] = {}  # of values of the program, the copy that their users share


class Solver:
    """Builds and solves the tables of one program. ``axes`` split dimensions as wholes."""

    def __init__(self, propagated: Propagated, counts: Counts, axes: Sequence[Axes]) -> None:
        self.engine = propagated.engine
        self.network = ProgramTables(propagated, counts, axes)
        self.network.read()

    @property
    def left_out(self) -> str:
        """Describes the part that the tables do not decide; "" if they decide everything."""
        count = self.network.narrowed
        return f"{count} values have more splits, or an op beside them more ways, than are listed" if count else ""

    def place(self, index: int) -> Place:
        """Return the variable of a value of the engine, with its splits."""
        return self.network.place(index)

    def price(self, values: Mapping[int, int]) -> float:
        """Return the price of an assignment; after ``solve`` its reshards are priced as planned."""
        return total(self.network.tables, values)

    def solve(
        self,
        more: Sequence[Table] = (),
        fixed: Values | None = None,
        start: Values | None = None,
        budget: Budget | None = None,
        entries: int = ENTRIES,
    ) -> Solution:
        """Return the cheapest assignment, as the splits of the engine's values that it changes.

        ``more``: further tables of these variables. ``fixed``: values of some variables. ``start``: values of all, from
        a solution of similar tables. ``budget``: of each search; ``entries``: of the tables in all
        rounds.
        """
        fixed = fixed or {}
        present = dict(self.network.present)
        for variable, domain in self.network.domains.items():
            dims = self.engine.values[variable].dims
            present[variable] = domain.index(dims) if dims in domain else 0
        present |= fixed
        known: Values = {**_ways_at(self.network.tables, present), **present}
        if start is not None:
            known = {**known, **start, **fixed}
        left, scale, ties = entries, math.inf, list[Table]()
        bound, why, planned = -math.inf, "", list[Values]()
        while True:
            tables = [*self.network.tables, *more]
            price = total(tables, known)
            if price + total(ties, known) <= bound * (1 + CLOSE) or left < 0:
                break  # what was raised is not worth another answer, or no more may be spent
            if abs(scale - price) > RESCALED * price:
                scale, ties = price, list(self.among_equals(present, price))
            network = Network.of((*tables, *ties))
            left -= network.entries
            answer = solve(network.given(fixed) if fixed else network, known, budget)
            if not answer.values:
                return Solution({}, answer, {})
            planned.append({**answer.values, **fixed})
            bound, why = answer.bound, answer.why
            raised = self.network.plan(planned[-1])
            tables = [*self.network.tables, *more]
            known = min(planned, key=lambda values: total(tables, values) + total(ties, values))
            if not raised:
                break
        out, partial = {}, {}
        for variable, domain in self.network.domains.items():
            layout = domain[known.get(variable, present[variable])]
            if axes := over(layout):
                partial[variable] = axes
            for index in self.network.members.get(variable, [variable]):
                if (dims := split_of(layout)) != self.engine.values[index].dims:
                    out[index] = dims
        price = total(tables, known)
        most = math.fsum([float(table.costs.max()) for table in ties])
        bound = min(price, bound - most)
        ways_of = self.network.ways
        raised = True
        while raised:  # reshards of a way that no solution had may cost more than the tables have
            tables = [*self.network.tables, *more]
            values = most_split(tables, dict(ways_of.values()), self.network.program.mesh, known)
            raised = self.network.plan(values)
        ways = {op: strategies[values[variable]].factors for op, (variable, strategies) in ways_of.items()}
        return Solution(out, Result(values, price, bound, why), ways, partial, self.network.copies_at(values))

    def among_equals(self, present: Mapping[int, int], price: float) -> Iterator[Table]:
        """Yield tables that decide between assignments of equal price. ``price``: of the present assignment."""
        if not 0 < price < math.inf:
            return
        program, values = self.network.program, self.engine.values
        arguments = {self.network.propagated.index.get(value) for value in program.body.arguments}
        sizes = {index: values[index].bytes for index in arguments if index is not None}
        whole, count = max(sum(sizes.values()), 1), max(len(self.network.domains), 1)
        for variable, domain in self.network.domains.items():
            if len(domain) > 1:
                parts = np.array([program.mesh.count(tuple(itertools.chain(*dims))) for dims in domain])
                changes = np.arange(len(domain)) != present[variable]
                memory = RESIDENT * sizes.get(variable, 0) / whole / parts
                yield Table((variable,), price * (memory + CHANGE / count * changes))


def _ways_at(tables: Sequence[Table], present: Mapping[int, int]) -> dict[int, int]:
    """Return the best value of each variable that is not ``present``, with the others at their present values."""
    costs: dict[int, Costs] = {}
    for table in tables:
        free = [variable for variable in table.variables if variable not in present]
        if len(free) == 1:
            at = tuple([present.get(variable, slice(None)) for variable in table.variables])
            costs[free[0]] = costs.get(free[0], 0.0) + table.costs[at]
    return {variable: int(np.argmin(cost)) for variable, cost in costs.items()}
