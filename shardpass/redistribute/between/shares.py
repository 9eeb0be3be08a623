"""Divide the bytes of each demand among its trees, by a linear program.

Problem: every demand has trees (``trees``); choose shares x of its bytes for these such that the busiest port is done
soonest. A linear program, solved exactly by HiGHS:

    minimise T + a trifle for all traffic,  with  sum of x over the trees of a demand = its bytes,
    for each port: sum of (edges of the tree at this port) * x / rate, and the time in which it is idle, <= T.

Where no demand has more than one tree there is nothing to choose. ``parts`` rounds shares to elements.
A vertex of the program has at most as many shares as demands and ports together, so that few demands are cut.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import numpy as np

from shardpass.redistribute.between.cells import Demand
from shardpass.redistribute.between.idle import Port, idle
from shardpass.redistribute.between.ports import Ports
from shardpass.redistribute.between.trees import Tree

TRIFLE = 1e-5  # of the makespan, for all traffic: of ways that are equally fast, the one with fewer bytes
LEAST = 1e-7  # of a demand, below which a share is none


def loads(tree: Tree, ports: Ports) -> Counter[Port]:
    """Count the edges of a tree at each port."""
    count: Counter[Port] = Counter()
    for edge in tree:
        tier = ports.tier(edge.sender, edge.receiver)
        count[False, tier, edge.sender] += 1
        count[True, tier, edge.receiver] += 1
    return count


def shares(wanted: Sequence[Demand], ways: Sequence[Sequence[Tree]], ports: Ports) -> list[list[tuple[Tree, float]]]:
    """Divide the bytes of each demand among its trees so that the busiest port finishes as early as possible."""
    if all(len(trees) == 1 for trees in ways):
        return [[(trees[0], float(demand.bytes))] for demand, trees in zip(wanted, ways, strict=True)]
    from scipy.optimize import linprog  # 0.6 s, which most commands need not spend
    from scipy.sparse import coo_array

    rows: dict[Port, int] = {}
    entries: list[tuple[int, int, float]] = []
    owner = [k for k, trees in enumerate(ways) for _ in trees]
    columns = [tree for trees in ways for tree in trees]
    sizes = np.array([demand.bytes for demand in wanted], float)
    scale = _scale(wanted, ports)
    for column, tree in enumerate(columns):
        for port, count in loads(tree, ports).items():
            row = rows.setdefault(port, len(rows))
            entries.append((row, column, count * sizes[owner[column]] / ports.rates[port[1]] / scale))
    values = np.array([entry[2] for entry in entries])
    where = np.array([entry[:2] for entry in entries]).T
    last = len(columns)
    limits = coo_array(
        (
            np.concatenate([values, np.full(len(rows), -1.0)]),
            (
                np.concatenate([where[0], np.arange(len(rows))]),
                np.concatenate([where[1], np.full(len(rows), last)]),
            ),
        ),
        shape=(len(rows), last + 1),
    )
    sums = coo_array((np.ones(last), (np.array(owner), np.arange(last))), shape=(len(wanted), last + 1))
    waits, _ = idle(wanted, ports, rows)
    traffic = np.bincount(where[1], values, minlength=last + 1)
    price = TRIFLE * traffic / max(1, len(rows))
    price[last] = 1
    idle_for = [-waits[port] / scale for port in rows]
    solved = linprog(
        price, A_ub=limits.tocsr(), b_ub=idle_for, A_eq=sums.tocsr(), b_eq=np.ones(len(wanted)),
        bounds=(0, None), method="highs",
    )  # fmt: skip
    by_demand: list[list[tuple[Tree, float]]] = [[] for _ in wanted]
    for column, share in enumerate(solved.x[:last]):
        if share > LEAST:
            k = owner[column]
            by_demand[k].append((columns[column], share * sizes[k]))
    return by_demand


def _scale(wanted: Sequence[Demand], ports: Ports) -> float:
    """Return the time of a device of average traffic: numbers near 1 keep the program well conditioned."""
    devices = {device for demand in wanted for device in demand.receivers}
    return sum(demand.bytes * len(demand.receivers) for demand in wanted) / len(devices) / min(ports.rates)
