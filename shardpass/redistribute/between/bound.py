"""The least makespan of any plan.

Problem: no plan is known, but every plan has facts. For each demand (unsplit, by ``cells``), u any device that holds or
needs the bytes, v one that needs them, in fractions of its bytes:

    out[u, t], in[v, t] >= 0       what u sends and v receives over tier t
    sum over t of in[v, t] = 1     v receives everything
    in a block B of tier t         the sum of out[u, t] over B = the sum of in[v, t] over B
    of a block b of tier t-1 in B  what comes into b over t is sent by the rest of B
    of a block b without holders   at least one copy comes in over the outer tiers
    the holders                    send at least one copy
    each port                      the sum over the demands of bytes / rate, and a latency, is at most T

The least T is a bound for all plans in which devices receive nothing that these do not need; a linear program, solved
exactly by HiGHS. Where each demand has one holder and one receiver it is a maximum over ports, without a solver, and
with one receiver each it is the transport problem, whose optimum a plan reaches but for latencies.

O(demands * devices * tiers) variables.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence

import numpy as np
from scipy.optimize import linprog
from scipy.sparse import coo_array

from shardpass.redistribute.between.cells import Demand
from shardpass.redistribute.between.ports import Ports


def least_seconds(wanted: Sequence[Demand], ports: Ports) -> float:
    """A bound on the makespan of every plan, latency included."""
    if not wanted:
        return 0.0
    latencies = _latencies(wanted, ports)
    if all(len(demand.holders) == len(demand.receivers) == 1 for demand in wanted):
        return _of_pairs(wanted, ports, latencies)
    program = _Program()
    scale = sum(demand.bytes for demand in wanted) / min(ports.rates)
    for demand in wanted:
        _add(demand, ports, program, scale)
    return program.least([latency / scale for latency in latencies]) * scale


def _latencies(wanted: Sequence[Demand], ports: Ports) -> list[float]:
    """By tier, the latency after the last byte at a port of that tier.

    Some message crosses the outermost tier that a receiver has to all of its holders, so that no plan is done before
    its latency, and a port of a tier that sends nothing need not count one of its own.
    """
    forced = max(
        min(ports.tier(holder, receiver) for holder in demand.holders)
        for demand in wanted
        for receiver in demand.receivers
    )
    least = min(ports.latencies[forced:])
    return [min(latency, least) for latency in ports.latencies]


def _of_pairs(wanted: Sequence[Demand], ports: Ports, latencies: Sequence[float]) -> float:
    load: dict[tuple[bool, int, int], float] = defaultdict(float)
    for demand in wanted:
        (sender,), (receiver,) = demand.holders, demand.receivers
        tier = ports.tier(sender, receiver)
        load[False, tier, sender] += demand.bytes / ports.rates[tier]
        load[True, tier, receiver] += demand.bytes / ports.rates[tier]
    return max(seconds + latencies[tier] for (_, tier, _), seconds in load.items())


class _Program:
    """Rows of ``sum <= limit`` and ``sum = value``; variable 0 is T."""

    def __init__(self) -> None:
        self.count = 1
        self.rows: dict[bool, list[tuple[list[tuple[int, float]], float]]] = {False: [], True: []}
        self.ports: dict[tuple[bool, int, int], list[tuple[int, float]]] = defaultdict(list)

    def variable(self, port: tuple[bool, int, int], seconds: float) -> int:
        self.ports[port].append((self.count, seconds))
        self.count += 1
        return self.count - 1

    def add(self, terms: list[tuple[int, float]], value: float, *, equal: bool) -> None:
        self.rows[equal].append((terms, value))

    def least(self, latencies: Sequence[float]) -> float:
        for (_, tier, _), terms in self.ports.items():
            self.add([*terms, (0, -1.0)], -latencies[tier], equal=False)
        price = np.zeros(self.count)
        price[0] = 1
        (upper, most), (same, values) = (self._matrix(self.rows[equal]) for equal in (False, True))
        solved = linprog(price, A_ub=upper, b_ub=most, A_eq=same, b_eq=values, bounds=(0, None), method="highs")
        return float(solved.fun)

    def _matrix(self, rows: list[tuple[list[tuple[int, float]], float]]) -> tuple[object, list[float]]:
        entries = [(r, column, value) for r, (terms, _) in enumerate(rows) for column, value in terms]
        row, column, value = zip(*entries, strict=True)
        return coo_array((value, (row, column)), shape=(len(rows), self.count)).tocsr(), [limit for _, limit in rows]


def _add(demand: Demand, ports: Ports, program: _Program, scale: float) -> None:
    """The rows of one demand."""
    receivers, everyone = demand.receivers, sorted({*demand.holders, *demand.receivers})
    seconds = [demand.bytes / rate / scale for rate in ports.rates]
    out: dict[tuple[int, int], int] = {}  # by device and tier
    into: dict[tuple[int, int], int] = {}
    for tier in range(len(ports.rates)):
        outer, inner = _members(everyone, ports, tier), _members(everyone, ports, tier - 1)
        needing = _members(receivers, ports, tier)
        for block, members in outer.items():
            parts = {ports.block_of(device, tier - 1) for device in members}
            if len(parts) < 2 or block not in needing:
                continue
            for device in members:
                others = any(ports.block_of(r, tier - 1) != ports.block_of(device, tier - 1) for r in needing[block])
                if others:
                    out[device, tier] = program.variable((False, tier, device), seconds[tier])
                if device in receivers:
                    into[device, tier] = program.variable((True, tier, device), seconds[tier])
            sent = [(out[device, tier], 1.0) for device in members if (device, tier) in out]
            taken = [(into[device, tier], -1.0) for device in members if (device, tier) in into]
            program.add(sent + taken, 0.0, equal=True)
            for part in parts if len(parts) > 2 or tier else ():
                here = [(into[d, tier], 1.0) for d in inner[part] if (d, tier) in into]
                away = [
                    (out[d, tier], -1.0) for d in members if (d, tier) in out and ports.block_of(d, tier - 1) != part
                ]
                if here:
                    program.add(here + away, 0.0, equal=False)
    for device in receivers:
        program.add([(into[device, t], 1.0) for t in range(len(ports.rates)) if (device, t) in into], 1.0, equal=True)
    for tier in range(len(ports.rates) - 1):
        holding = _members(demand.holders, ports, tier)
        for block, members in _members(receivers, ports, tier).items():
            if block not in holding:
                terms = [(column, -1.0) for (d, t), column in into.items() if t > tier and d in members]
                program.add(terms, -1.0, equal=False)
    program.add([(column, -1.0) for (d, _), column in out.items() if d in demand.holders], -1.0, equal=False)


def _members(devices: Sequence[int], ports: Ports, tier: int) -> dict[int, list[int]]:
    blocks: dict[int, list[int]] = defaultdict(list)
    for device in devices:
        blocks[ports.block_of(device, tier)].append(device)
    return blocks
