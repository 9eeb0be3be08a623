"""Among equally cheap ways of an op, prefer the one that splits its work the most.

A machine that counts bytes alone has no price for work, and a broadcast costs nothing on any: a solver may then compute
the whole on every device and slice a tile of it. Ops are looked at one after the other, the others as they are decided.

Example on data=2: of ``broadcast w : [64] -> [8, 64]``, wanted as ``[data, None]``, both the way that makes 8 rows and
the way that makes 4 cost nothing; the second is chosen.

Complexity: O(entries of the tables' rows at the ways of each op).
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Mapping, Sequence

import numpy as np

from shardpass.ops.splits.prime_mesh import PrimeMesh
from shardpass.planning.options.ways import Way
from shardpass.planning.solve.network import Table

EQUAL = 1e-12  # of the greatest price in a sum: rounding


def most_split(
    tables: Iterable[Table], ways: Mapping[int, Sequence[Way]], mesh: PrimeMesh, values: Mapping[int, int]
) -> dict[int, int]:
    """Return the assignment ``values`` with ways of the same price that split more. ``ways``: by variable."""
    of_way: dict[int, list[Table]] = {variable: [] for variable in ways}
    for table in tables:
        for variable in table.variables:
            if variable in of_way:
                of_way[variable].append(table)
    out = dict(values)
    for variable, several in ways.items():
        costs = np.zeros(len(several))
        for table in of_way[variable]:
            at = tuple([slice(None) if other == variable else out[other] for other in table.variables])
            costs = costs + table.costs[at]
        present = out[variable]
        limit = costs[present] + EQUAL * abs(costs[present])
        equal = [way for way in range(len(several)) if costs[way] <= limit]
        out[variable] = max(equal, key=lambda way: (parts(several[way], mesh), way == present))
    return out


def parts(way: Way, mesh: PrimeMesh) -> int:
    """Count the devices over which ``way`` splits its op."""
    return mesh.count(tuple(itertools.chain.from_iterable(axes for _, axes in way.factors)))
