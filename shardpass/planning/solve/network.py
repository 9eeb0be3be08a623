"""A cost function network: variables with few values each, and a price that is a sum of tables over few of them.

    price(assignment) = base + sum over tables T of T.costs[assignment of T's variables]

State: one table for each set of variables (parallel tables are added up), the least entry of each moved into ``base``,
so that entries are the excess over what is paid in any case. An infinite entry forbids its combination.

Example: tables over (x, y), (y, x) and (x) become one over (x, y) and one over (x); with entries 3, 5 and 4, 7 the sum
has a base of 3 + 4 and the entries 0, 2 and 0, 3.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

Costs = np.ndarray[Any, Any]


@dataclass(frozen=True, slots=True)
class Table:
    """Costs by the values of ``variables``: one dimension for each, in their order. No variable occurs twice."""

    variables: tuple[int, ...]
    costs: Costs


@dataclass(frozen=True)
class Network:
    """A sum of ``tables`` and ``base``. ``sizes``: the number of values of each variable, in the order of the
    variables.
    """

    sizes: Mapping[int, int]
    tables: tuple[Table, ...]
    base: float = 0.0

    @classmethod
    def of(cls, tables: Iterable[Table], sizes: Mapping[int, int] | None = None) -> Network:
        """Return the network of ``tables``. ``sizes``: of variables that may occur in no table."""
        known = dict(sizes or {})
        parallel: dict[tuple[int, ...], list[Table]] = {}
        for table in tables:
            known.update(zip(table.variables, table.costs.shape, strict=True))
            variables = table.variables
            if len(variables) > 1 and (len(variables) > 2 or variables[0] > variables[1]):
                variables = tuple(sorted(variables))
            parallel.setdefault(variables, []).append(table)
        kept, base = [], []
        for order, several in parallel.items():
            least, excess = _added_up(order, several)
            base.append(least)
            if excess is not None:
                kept.append(excess)
        return cls(dict(sorted(known.items())), tuple(kept), math.fsum(base))

    @property
    def entries(self) -> int:
        """The number of entries of all tables."""
        return sum(table.costs.size for table in self.tables)

    def price(self, values: Mapping[int, int]) -> float:
        """Return the price of the assignment ``values``, which has a value for each variable."""
        return self.base + total(self.tables, values)

    def given(self, values: Mapping[int, int]) -> Network:
        """Return the network of the remaining variables, with those of ``values`` fixed; prices are those of
        the whole.
        """
        tables = [
            Table(
                tuple([variable for variable in table.variables if variable not in values]),
                table.costs[tuple([values.get(variable, slice(None)) for variable in table.variables])],
            )
            for table in self.tables
        ]
        sizes = {variable: size for variable, size in self.sizes.items() if variable not in values}
        rest = Network.of(tables, sizes)
        return Network(rest.sizes, rest.tables, rest.base + self.base)

    def components(self) -> list[Network]:
        """Return the networks of connected variables; their prices and ``base`` add up to the price of the network."""
        leaders = {variable: variable for variable in self.sizes}

        def leader(variable: int) -> int:
            while leaders[variable] != variable:
                leaders[variable] = leaders[leaders[variable]]
                variable = leaders[variable]
            return variable

        for table in self.tables:
            first = leader(table.variables[0])
            for variable in table.variables[1:]:
                leaders[leader(variable)] = first
        parts: dict[int, tuple[dict[int, int], list[Table]]] = {}
        for variable, size in self.sizes.items():
            parts.setdefault(leader(variable), ({}, []))[0][variable] = size
        for table in self.tables:
            parts[leader(table.variables[0])][1].append(table)
        return [Network(sizes, tuple(tables)) for sizes, tables in parts.values()]


def _added_up(order: tuple[int, ...], tables: Sequence[Table]) -> tuple[float, Table | None]:
    """Add up parallel ``tables``: returns the least entry and a table of the excess over it, None if that is zero."""
    turned = [
        table.costs
        if table.variables == order
        else table.costs.transpose([table.variables.index(variable) for variable in order])
        for table in tables
    ]
    costs = turned[0]
    for other in turned[1:]:
        costs = costs + other
    least = float(costs.min()) if costs.size else 0.0
    excess = costs - least if least and math.isfinite(least) else costs
    return least, Table(order, excess) if order and excess.any() else None


def total(tables: Iterable[Table], values: Mapping[int, int]) -> float:
    """Return the sum of ``tables`` at the assignment ``values``."""
    return math.fsum([float(table.costs[at(table, values)]) for table in tables])


def at(table: Table, values: Mapping[int, int]) -> tuple[int, ...]:
    """Return the index into ``table`` of the assignment ``values``."""
    return tuple([values[variable] for variable in table.variables])


def aligned(table: Table, order: Sequence[int]) -> Costs:
    """Return the costs with one dimension for each variable of ``order``, of size 1 for those the table lacks."""
    places = [order.index(variable) for variable in table.variables]
    turned = table.costs
    if sorted(places) != places:
        turned = turned.transpose(sorted(range(len(places)), key=places.__getitem__))
    shape = [1] * len(order)
    for place, size in zip(places, table.costs.shape, strict=True):
        shape[place] = size
    return turned.reshape(shape)
