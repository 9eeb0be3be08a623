"""The same network as an integer program, solved by HiGHS (``scipy.optimize.milp``): a witness, and a substitute.

A number of 0 or 1 for each value of a variable, which sum to 1; a number for each entry of a table of several
variables, whose sums along all others are those of each value (the local polytope; Schlesinger 1976). Entries that are
forbidden have no number.

Example: x and y of two values each and one table: 2 + 2 + 4 numbers, 2 sums of 1, and 4 sums of two entries.

Limits count, as toulbar2's do: the nodes of branch and bound, and the entries of programs that are given to it at all,
as the first relaxation of a large one takes minutes.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace

import numpy as np

from shardpass.planning.solve.network import Costs, Network, Table
from shardpass.planning.solve.result import Result

MOST_ENTRIES = 1 << 17


def solve(network: Network, known: Mapping[int, int] | None, nodes: int) -> Result:
    """Return the best assignment after ``nodes`` of branch and bound, no more expensive than ``known``, with a
    lower bound.
    """
    if not network.tables:
        return Result(dict.fromkeys(network.sizes, 0), network.base, network.base)
    best = Result({}, math.inf, network.base)
    if known is not None and math.isfinite(price := network.price(known)):
        best = Result(known, price, network.base)
    if network.entries > MOST_ENTRIES:
        why = f"toulbar2 is not installed, and {network.entries} entries are too many for HiGHS"
        return replace(best, why=why)
    answer = _milp(network, nodes, best.price - network.base if math.isfinite(best.price) else math.inf)
    bound = network.base + answer.bound
    why = f"{nodes} nodes were spent" if answer.limited else ""
    if answer.values is not None and (price := network.price(answer.values)) < best.price:
        best = Result(answer.values, price, bound)
    if not answer.limited and not best.values:
        return Result({}, math.inf, math.inf)
    return replace(best, bound=min(bound, best.price), why=why)


@dataclass(frozen=True)
class _Answer:
    values: Mapping[int, int] | None
    bound: float
    limited: bool


@dataclass
class _Columns:
    """The numbers of an integer program, and the sums that constrain them."""

    costs: list[Costs] = field(default_factory=list)
    count: int = 0
    rows: list[tuple[Costs, Costs, float]] = field(default_factory=list)  # columns, factors, sum

    def add(self, costs: Costs) -> Costs:
        """Add one number for each of ``costs``, and return their columns in the same shape."""
        columns = np.arange(self.count, self.count + costs.size).reshape(costs.shape)
        self.costs.append(costs.ravel())
        self.count += costs.size
        return columns


def _milp(network: Network, nodes: int, upper: float) -> _Answer:
    from scipy.optimize import Bounds, LinearConstraint, milp
    from scipy.sparse import csr_matrix

    columns = _Columns()
    places = {variable: columns.add(np.zeros(size)) for variable, size in network.sizes.items()}
    whole = columns.count
    for place in places.values():
        columns.rows.append((place, np.ones(len(place)), 1.0))
    for table in network.tables:
        columns.rows += _sums(table, columns, places)
    costs = np.concatenate(columns.costs)
    for table in network.tables:
        if len(table.variables) == 1:
            costs[places[table.variables[0]]] += table.costs
    allowed = costs <= upper
    scale = upper if math.isfinite(upper) else costs[allowed & np.isfinite(costs)].max(initial=0.0)
    scale = scale or 1.0
    rows = np.concatenate([np.full(len(cols), row) for row, (cols, _, _) in enumerate(columns.rows)])
    cols = np.concatenate([cols for cols, _, _ in columns.rows])
    factors = np.concatenate([factors for _, factors, _ in columns.rows])
    sums = np.array([total for _, _, total in columns.rows])
    matrix = csr_matrix((factors, (rows, cols)), shape=(len(sums), columns.count))
    usable = allowed & np.isfinite(costs)
    answer = milp(
        np.where(usable, costs, 0.0) / scale,
        integrality=np.arange(columns.count) < whole,
        bounds=Bounds(0, usable.astype(float)),
        constraints=LinearConstraint(matrix, sums, sums),
        options={"node_limit": nodes, "mip_rel_gap": 1e-9},
    )
    if answer.x is None:
        return _Answer(None, upper if answer.status == 2 else 0.0, answer.status != 2)
    values = {variable: int(np.argmax(answer.x[place])) for variable, place in places.items()}
    return _Answer(values, float(answer.mip_dual_bound) * scale, answer.status != 0)


def _sums(table: Table, columns: _Columns, places: Mapping[int, Costs]) -> Iterator[tuple[Costs, Costs, float]]:
    """Yield the constraints that tie a table to its variables: the entries with a value sum to the number of
    the value.
    """
    if len(table.variables) == 1:
        return
    entries = columns.add(table.costs)
    for axis, variable in enumerate(table.variables):
        for value, column in enumerate(places[variable]):
            with_value = np.take(entries, value, axis=axis).ravel()
            yield np.append(with_value, column), np.append(np.ones(len(with_value)), -1.0), 0.0
