"""Find the cheapest assignment of a cost function network, and a lower bound on all assignments.

1. Independent components of the network are solved separately.
2. If elimination solves a component with small tables, the answer is exact and no other solver is loaded. This is
the case for chains of products, and for most programs on one mesh axis.
3. In other components, variables with at most two neighbors are eliminated first, which makes no table of more than
two variables. toulbar2 solves the rest: its bounds and a short search prove most small networks. For others, values
that no optimal assignment has are removed (``reduce``), since the answer of the short search is close, and a longer
search follows. Without toulbar2, HiGHS solves the reduced network as an integer program.
4. The answer is never more expensive than the ``known`` assignment.

Deterministic: budgets count entries and backtracks, never seconds.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np

from shardpass.planning.solve import highs, toulbar2
from shardpass.planning.solve.eliminate import Elimination, elimination_order
from shardpass.planning.solve.network import Network
from shardpass.planning.solve.reduce import reduced
from shardpass.planning.solve.result import Result

SHORT, SMALL = 3, 1 << 20  # backtracks of a first search, and entries of networks that have one


@dataclass(frozen=True)
class Budget:
    """Limits of the search.

    ``entries``: the size of the largest table that elimination may make; making it takes about as long as loading
    toulbar2. ``pairs``: the same for variables with two neighbors, whose elimination does not enlarge the network.
    ``backtracks``: the backtracks of toulbar2's search, after its bounds.
    """

    entries: int = 1 << 14
    pairs: int = 1 << 20
    backtracks: int = 200


def solve(
    network: Network,
    known: Mapping[int, int] | None = None,
    budget: Budget | None = None,
) -> Result:
    """Return the best assignment within ``budget``. ``known``: an assignment of all variables that is not to
    be exceeded.
    """
    budget = budget or Budget()
    parts = [_component(part, known, budget) for part in network.components()]
    if not all(math.isfinite(part.price) for part in parts):
        forbidden = any(part.bound == math.inf for part in parts)
        return Result({}, math.inf, math.inf if forbidden else -math.inf, _why(parts))
    values = {variable: value for part in parts for variable, value in part.values.items()}
    price = network.price(values)
    bound = min(price, network.base + math.fsum([part.bound for part in parts]))
    return Result(values, price, bound, _why(parts))


def _why(parts: list[Result]) -> str:
    return next((part.why for part in parts if part.why), "")


def _component(network: Network, known: Mapping[int, int] | None, budget: Budget) -> Result:
    if len(network.sizes) == 1:
        return _alone(network)
    elimination = Elimination(network, _order(network, budget))
    left = elimination.left
    if not left.sizes:
        return _lifted(Result({}, left.base, left.base), network, elimination)
    start = None if known is None else {variable: known[variable] for variable in left.sizes}
    return _lifted(_searched(left, start, budget.backtracks), network, elimination)


def _searched(network: Network, known: Mapping[int, int] | None, backtracks: int) -> Result:
    """Solve a network that elimination leaves; makes it smaller where the price of ``known`` bounds it, and a short
    search does not solve it.
    """
    plain, first = all(len(table.variables) <= 2 for table in network.tables), -math.inf
    solver = toulbar2.solve if toulbar2.available() else highs.solve
    if known is None or not plain or not math.isfinite(network.price(known)):
        return solver(network, known, backtracks)
    if solver is toulbar2.solve and network.entries <= SMALL:
        short = solver(network, known, min(backtracks, SHORT))
        if not short.why or backtracks <= SHORT:
            return short
        known, first = short.values, short.bound
    rest = reduced(network, known)
    answer = solver(rest.network, rest.best, backtracks)
    return replace(answer, values=rest.before(answer.values), bound=max(first, answer.bound))


def _order(network: Network, budget: Budget) -> list[int]:
    """Return the variables to eliminate before toulbar2; they depend on the graph and the sizes alone."""
    order, all_of_them = elimination_order(network, budget.entries, len(network.sizes))
    if not all_of_them:
        order, _ = elimination_order(network, budget.pairs, 2)
    return order


def _alone(network: Network) -> Result:
    """Solve a network of one variable, as most components are."""
    ((variable, size),) = network.sizes.items()
    costs = sum([table.costs for table in network.tables], start=np.zeros(size))
    best = int(costs.argmin())
    price = network.base + float(costs[best])
    return Result({variable: best} if math.isfinite(price) else {}, price, price)


def _lifted(result: Result, network: Network, elimination: Elimination) -> Result:
    """Extend ``result`` of what elimination left to all variables of ``network``."""
    if not math.isfinite(result.price):
        return result
    values = elimination.values(result.values)
    price = network.price(values)
    return Result(values, price, min(result.bound, price), result.why)
