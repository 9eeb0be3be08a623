"""Leaves out of a cost function network the values that no best assignment has, before it is searched.

Problem: an op has hundreds of ways, of which a few are in question, and a search pays for the tables of all.

Source: sequential tree-reweighted message passing (TRW-S; Kolmogorov 2006, "Convergent Tree-reweighted Message Passing
for Energy Minimization") for the bounds; values with a bound above the price of a known assignment are left out, as in
reduced cost fixing of integer programs.

State: an order of the variables; for each table two messages, one to each of its variables; the best assignment.

1. Forward, in the order of the variables: each adds up its own costs and its messages, and sends a share along its
   tables to the variables behind it. The assignment that gives each variable the least value, those before it given, is
   priced, and may be the best so far.
2. Backward, the same. The constants that messages move out of the tables add up to a lower bound of all assignments; at
   a variable, that bound and what a value has above the least value bound all assignments with that value.
3. Values with a bound above the best price are cut from the tables: the next pass is cheaper, and its bound higher.

Invariant: the network that is left has every assignment cheaper than the best known one, and that one.

Example: x and y have two values each; x costs 0 or 5, x and y together [[1, 2], [3, 1]]. The known assignment (0, 0)
costs 1. The second value of x costs at least 6 and is left out; then the second of y, which costs 2.

The order keeps neighbours near one another (reverse Cuthill-McKee), so that a pass carries costs along a whole chain of
ops. In the order of their numbers, values first and then ways, a pass would carry them by one op.

Tables of more than two variables are not looked at: a network that has one is left as it is.

Complexity: O(entries) a pass. The passes end where the bound stays, or where they have cost half of what a search of
what is left would.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from shardpass.planning.solve.network import Costs, Network, Table

CLOSE = 1e-4  # of the price: a gap that is none, and what a pass must raise the bound by to be worth another one
ROUNDING = 1e-9  # of the price: sums of floats that would be equal
CALLS = 6000  # entries that a pass looks at in the time that its calls of NumPy take for one table
SEARCH = 100  # entries that a pass looks at in half of the time in which toulbar2 searches one


@dataclass(frozen=True)
class Reduced:
    """A reduced network. ``best``: the best known assignment, in the network's numbers. ``values``: for each
    variable, the original numbers of its values.
    """

    network: Network
    best: Mapping[int, int]
    values: Mapping[int, Costs]

    def before(self, assignment: Mapping[int, int]) -> dict[int, int]:
        """Return ``assignment`` in the numbers of the network before."""
        return {variable: int(self.values[variable][value]) for variable, value in assignment.items()}


def reduced(network: Network, known: Mapping[int, int]) -> Reduced:
    """Reduce ``network``, which has tables over one or two variables. ``known``: an assignment of finite price."""
    messages = _Messages(network, known)
    spent, before = 0, -math.inf
    while messages.bound < messages.price * (1 - CLOSE) and messages.bound > before + CLOSE * messages.price:
        spent += messages.entries + CALLS * len(messages.edges)
        if spent > SEARCH * messages.entries:
            break
        before = messages.bound
        messages.forward()
        messages.backward()
    return messages.left()


class _Edge:
    """A table over two variables, ``first`` before ``second`` in the order, with the messages to both."""

    __slots__ = ("costs", "first", "second", "to_first", "to_second")

    def __init__(self, first: int, second: int, costs: Costs) -> None:
        self.first, self.second, self.costs = first, second, np.ascontiguousarray(costs)
        self.to_first, self.to_second = np.zeros(costs.shape[0]), np.zeros(costs.shape[1])

    def send_on(self, share: Costs) -> None:
        """Replace the message to ``second``. ``share``: of what ``first`` has added up."""
        message = (self.costs + (share - self.to_first)[:, None]).min(axis=0)
        self.to_second = message - message.min()

    def send_back(self, share: Costs) -> float:
        """Replace the message to ``first``, and return the constant that this moves out of the table."""
        message = (self.costs + (share - self.to_second)[None, :]).min(axis=1)
        least = message.min()
        self.to_first = message - least
        return float(least)


class _Messages:
    """The tables and messages of a network. ``price`` and ``bound`` are without its base."""

    def __init__(self, network: Network, known: Mapping[int, int]) -> None:
        self.whole, self.best = network, known
        self.price, self.bound = network.price(known) - network.base, 0.0
        self.order = _order(network)
        self.own = {variable: np.zeros(size) for variable, size in network.sizes.items()}
        self.values = {variable: np.arange(size) for variable, size in network.sizes.items()}
        self.before: dict[int, list[_Edge]] = {variable: [] for variable in self.order}  # tables with one before
        self.behind: dict[int, list[_Edge]] = {variable: [] for variable in self.order}
        self.edges: list[_Edge] = []
        places = {variable: place for place, variable in enumerate(self.order)}
        for table in network.tables:
            costs = np.minimum(table.costs, self.price)  # no cheaper assignment has an entry above it
            if len(table.variables) == 1:
                self.own[table.variables[0]] += costs
                continue
            first, second = table.variables
            ahead = places[first] < places[second]
            edge = _Edge(first, second, costs) if ahead else _Edge(second, first, costs.T)
            self.edges.append(edge)
            self.behind[edge.first].append(edge)
            self.before[edge.second].append(edge)
        self.shares = {v: 1 / max(len(self.before[v]), len(self.behind[v]), 1) for v in self.order}

    @property
    def entries(self) -> int:
        """The number of entries of all tables over two variables."""
        return sum([edge.costs.size for edge in self.edges])

    def _added_up(self, variable: int) -> Costs:
        """Return the costs of the values of ``variable`` with all messages to it."""
        before, behind = self.before[variable], self.behind[variable]
        messages = *[edge.to_second for edge in before], *[edge.to_first for edge in behind]
        return sum(messages, start=self.own[variable])

    def forward(self) -> None:
        """Send messages in the order of the variables; keep the assignment made on the way if it is the best."""
        chosen: dict[int, int] = {}
        for variable in self.order:
            behind = self.behind[variable]
            given = [edge.costs[chosen[edge.first]] for edge in self.before[variable]]
            chosen[variable] = int(sum([*given, *[e.to_first for e in behind]], start=self.own[variable]).argmin())
            share = self.shares[variable] * self._added_up(variable)
            for edge in behind:
                edge.send_on(share)
        values = {variable: int(self.values[variable][value]) for variable, value in chosen.items()}
        price = self.whole.price(values) - self.whole.base
        if price < self.price:
            self.price, self.best = price, values

    def backward(self) -> None:
        """Send messages against the order of the variables, raise the bound, and cut values."""
        bound, limit = 0.0, self.price * (1 + ROUNDING)
        for variable in reversed(self.order):
            costs = self._added_up(variable)
            least = costs.min()
            bound += float(least)
            costs = costs - least
            for edge in self.before[variable]:
                bound += edge.send_back(self.shares[variable] * costs)
            kept = self.bound + costs <= limit
            if not kept.all():
                self._cut(variable, kept | (self.values[variable] == self.best[variable]))
        self.bound = max(self.bound, bound)

    def _cut(self, variable: int, kept: Costs) -> None:
        """Remove the values of ``variable`` that are not in ``kept`` from its tables and messages."""
        self.own[variable], self.values[variable] = self.own[variable][kept], self.values[variable][kept]
        for edge in self.behind[variable]:
            edge.costs, edge.to_first = edge.costs[kept], edge.to_first[kept]
        for edge in self.before[variable]:
            edge.costs, edge.to_second = np.ascontiguousarray(edge.costs[:, kept]), edge.to_second[kept]

    def left(self) -> Reduced:
        """Return the network of the values that are left, with the entries that it had."""
        tables = [
            Table(table.variables, table.costs[np.ix_(*[self.values[variable] for variable in table.variables])])
            for table in self.whole.tables
        ]
        rest = Network.of(tables, {variable: len(values) for variable, values in self.values.items()})
        network = Network(rest.sizes, rest.tables, rest.base + self.whole.base)
        best = {variable: int(np.searchsorted(self.values[variable], value)) for variable, value in self.best.items()}
        return Reduced(network, best, self.values)


def _order(network: Network) -> Sequence[int]:
    """Order the variables so that neighbors are close to one another."""
    from scipy.sparse import coo_array  # 0.1 s, which programs that elimination solves need not spend
    from scipy.sparse.csgraph import reverse_cuthill_mckee

    variables = list(network.sizes)
    places = {variable: place for place, variable in enumerate(variables)}
    pairs = [[places[variable] for variable in table.variables] for table in network.tables if len(table.variables) > 1]
    rows, columns = np.array([*pairs, *[pair[::-1] for pair in pairs]]).T
    graph = coo_array((np.ones(len(rows)), (rows, columns)), shape=(len(variables),) * 2)
    return [variables[place] for place in reverse_cuthill_mckee(graph.tocsr(), symmetric_mode=True)]
