"""The tables of a program, reduced once to the variables that annotations fix, to be solved with these fixed or open.

Problem: trials of annotations solve the same tables a few dozen times, with other values fixed. Most of the time of one
solution is not the search: it adds up parallel tables and eliminates thousands of variables that no annotation names.

1. All tables, those that tie states, and those that decide among equals are added up, and every variable that no
   annotation can fix is eliminated while it has at most ``NEIGHBOURS`` neighbours. This is exact, and done once.
2. A solution fixes values in what is left, solves that, and recovers the values of all eliminated variables.
3. Reshards of the solution are planned, which may raise entries of the tables. What was reduced then prices this
   solution too low: where it costs more than ``CLOSE`` above its bound, step 1 is done again with the raised entries.

Example: in ``h = relu(x @ w1); y = h @ w2`` annotations fix x, w1, w2 and y. The ways of both products and of relu, and
h, are eliminated; what is left is one or two tables over the four.

State: the reduced tables. Complexity: one elimination, then O(entries left) and a search for each solution.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from shardpass.ops.splits.factors import DimAxes
from shardpass.planning.partial import split_of
from shardpass.planning.problem import Answer, Problem
from shardpass.planning.solve.eliminate import Elimination, elimination_order
from shardpass.planning.solve.network import Network, Table
from shardpass.planning.solve.solve import solve
from shardpass.planning.solver import CLOSE

NEIGHBOURS = 2  # of a variable that is eliminated, so that no table of more than two variables is made
ENTRIES = 1 << 20  # of the greatest table that an elimination makes
ROUNDS = 3  # solutions with raised entries


@dataclass(frozen=True)
class Outcome:
    """The cheapest splits with some values fixed: their price in seconds, the splits of all values of the engine, and
    the most bytes alive at once.
    """

    price: float
    splits: tuple[DimAxes, ...]
    peak: float


class Reduced:
    """The tables of ``problem`` with ``states``, reduced to the engine's values ``kept``.

    ``start``: an answer nearby.
    """

    def __init__(self, problem: Problem, states: Sequence[Table], start: Answer, kept: Iterable[int]) -> None:
        self.problem, self.solver, self.states, self.start = problem, problem.solver, states, start
        self.kept = {self.solver.place(index).variable for index in kept}
        network, values = self.solver.network, problem.propagated.engine.values
        self.present = {
            variable: domain.index(values[variable].dims) if values[variable].dims in domain else 0
            for variable, domain in network.domains.items()
        }
        self._reduced: Elimination | None = None

    def solve(self, fixed: Mapping[int, DimAxes]) -> Outcome | None:
        """Returns the cheapest splits with the engine's values ``fixed``, as far as the tables list their splits.

        Returns None where the states contradict them, or where ``fixed`` has values that are not among those kept.
        """
        given: dict[int, int] = {}
        for index, dims in fixed.items():
            place = self.solver.place(index)
            if dims in place.domain:
                given[place.variable] = place.domain.index(dims)
        if not self.kept.issuperset(given):
            return None
        known: Mapping[int, int] = {**self.start.values, **given}
        for _ in range(ROUNDS):
            reduced = self._reduced = self._reduced or self._reduce()
            result = solve(reduced.left.given(given), known)
            if not result.values and reduced.left.given(given).sizes:
                return None
            values = reduced.values({**given, **result.values})
            raised = self.solver.network.plan(values)
            price = self.solver.price(values)
            if not raised or price <= result.bound * (1 + CLOSE):
                break
            self._reduced, known = None, values
        return self._outcome(values, price)

    def _outcome(self, values: Mapping[int, int], price: float) -> Outcome:
        network = self.solver.network
        splits = [value.dims for value in self.problem.propagated.engine.values]
        for variable, domain in network.domains.items():
            dims = split_of(domain[values.get(variable, self.present[variable])])
            for index in network.members.get(variable, [variable]):
                splits[index] = dims
        peak = float(self.problem.alive(self.problem.sizes(splits)).max())
        return Outcome(price, tuple(splits), peak)

    def _reduce(self) -> Elimination:
        equal = self.solver.among_equals({**self.present, **self.solver.network.present}, self.start.price)
        network = Network.of([*self.solver.network.tables, *self.states, *equal])
        return Elimination(network, elimination_order(network, ENTRIES, NEIGHBOURS, self.kept)[0])
