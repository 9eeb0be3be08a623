"""A lower bound on the makespan of every plan, by a linear program.

Problem: no plan is known, but every plan has facts. For each demand (unsplit, by ``cells``), u any device that has or
needs the bytes, v one that needs them, in fractions of its bytes:

    out[u, t], in[v, t] >= 0       what u sends and v receives over tier t
    sum over t of in[v, t] = 1     v receives everything
    in a block B of tier t         the sum of out[u, t] over B = the sum of in[v, t] over B
    of a block b of tier t-1 in B  what comes into b over t is sent by the rest of B
    of a block b without holders   at least one copy comes in over the outer tiers
    the holders                    send at least one copy
    each port                      the sum over the demands of bytes / rate, and a latency, is at most T

Where the least T exceeds the latencies of two messages, this is true as well, and the program is solved again:

    bytes that come into b late    (less than a latency of b before the end) cannot be passed on in b: each receiver in
                                   b gets these itself, late; at a port late bytes take that latency at most, the others
                                   T less both latencies
    a port that sends              of a device that has nothing: until something has come, a latency
    a port that receives           over a tier with no holder to send over it: until a holder's message has come there
    the first latency              over each tier only holders send, so that at most as many receiving ports are busy

The least T is a bound for all plans in which devices receive nothing that these do not need; a linear program, solved
exactly by HiGHS. Where each demand has one holder and one receiver it is a maximum over ports, without a solver, and
with one receiver each it is the transport problem, whose optimum a plan reaches but for latencies.

O(demands * devices * tiers) variables.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence

import numpy as np

from shardpass.redistribute.between.cells import Demand
from shardpass.redistribute.between.idle import Port, Start, idle
from shardpass.redistribute.between.ports import Ports

Row = tuple[list[tuple[int, float]], float]
Into = Mapping[tuple[int, int], int]  # variables by device and tier


def least_seconds(wanted: Sequence[Demand], ports: Ports) -> float:
    """Return a bound on the makespan of every plan, latency included."""
    if not wanted:
        return 0.0
    latencies = _latencies(wanted, ports)
    if all(len(demand.holders) == len(demand.receivers) == 1 for demand in wanted):
        return _of_pairs(wanted, ports, latencies)
    program = _Program(ports, sum(demand.bytes for demand in wanted) / min(ports.rates))
    for demand in wanted:
        _add(demand, ports, program)
    first = program.least({port: latencies[port[1]] for port in program.ports}, [])
    waits, starts = idle(wanted, ports, program.ports)
    known = {port: wait if wait <= first else latencies[port[1]] for port, wait in waits.items()}
    return max(first, program.least(known, [start for start in starts if start.until <= first], first))


def _latencies(wanted: Sequence[Demand], ports: Ports) -> list[float]:
    """Return for each tier the latency after the last byte at a port of that tier.

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
    """Rows of ``sum <= limit`` and ``sum = value``; variable 0 is T, in units of ``scale`` seconds."""

    def __init__(self, ports: Ports, scale: float) -> None:
        self.scale = scale
        self.rates, self.latencies = ports.rates, ports.latencies
        self.count = 1
        self.rows: dict[bool, list[Row]] = {False: [], True: []}
        self.ports: dict[Port, list[tuple[int, float]]] = defaultdict(list)
        # By tier and receiver: the bytes that come over the tiers beyond, and the part of them that comes late.
        self.beyond: dict[tuple[int, int], list[tuple[int, float]]] = defaultdict(list)
        self.late: dict[tuple[int, int], list[tuple[int, float]]] = defaultdict(list)

    def variable(self, port: Port, seconds: float) -> int:
        self.ports[port].append((self.count, seconds))
        self.count += 1
        return self.count - 1

    def add(self, terms: list[tuple[int, float]], value: float, *, equal: bool) -> None:
        self.rows[equal].append((terms, value))

    def late_variable(self, tier: int, receiver: int, size: float, came: Sequence[int]) -> int:
        """Add the late part of the bytes ``came`` that cross the tiers beyond ``tier``."""
        seconds = size / sum(self.rates[tier + 1 :]) / self.scale
        self.beyond[tier, receiver] += [(column, seconds) for column in came]
        self.late[tier, receiver].append((self.count, seconds))
        self.count += 1
        return self.count - 1

    def least(self, waits: Mapping[Port, float], starts: Sequence[Start], known: float = 0.0) -> float:
        """Return the least T in seconds. ``waits``: the idle time of each port. ``known``: a bound on T."""
        from scipy.optimize import linprog  # 0.6 s, which most commands need not spend

        rows = [([*terms, (0, -1.0)], -waits[port] / self.scale) for port, terms in self.ports.items()]
        for (tier, receiver), terms in self.late.items():
            inner, outer = min(self.latencies[: tier + 1]), min(self.latencies[tier + 1 :])
            if inner + outer <= known:
                rows.append((terms, inner / self.scale))
                less = [(column, -seconds) for column, seconds in terms]
                rows.append(([*self.beyond[tier, receiver], *less, (0, -1.0)], -(inner + outer) / self.scale))
        for start in starts:
            terms = [term for port in start.ports for term in self.ports[port]]
            rows.append(([*terms, (0, -float(len(start.ports)))], -start.idle / self.scale))
        price = np.zeros(self.count)
        price[0] = 1
        (upper, most), (same, values) = (self._matrix(rows) for rows in (self.rows[False] + rows, self.rows[True]))
        solved = linprog(price, A_ub=upper, b_ub=most, A_eq=same, b_eq=values, bounds=(0, None), method="highs")
        return float(solved.fun) * self.scale

    def _matrix(self, rows: Sequence[Row]) -> tuple[object, list[float]]:
        from scipy.sparse import coo_array

        entries = [(r, column, value) for r, (terms, _) in enumerate(rows) for column, value in terms]
        row, column, value = zip(*entries, strict=True)
        return coo_array((value, (row, column)), shape=(len(rows), self.count)).tocsr(), [limit for _, limit in rows]


def _add(demand: Demand, ports: Ports, program: _Program) -> None:
    """Add the variables and constraints of one demand to the linear program (see the module's docstring)."""
    receivers, everyone = demand.receivers, sorted({*demand.holders, *demand.receivers})
    seconds = [demand.bytes / rate / program.scale for rate in ports.rates]
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
            received = [(into[device, tier], -1.0) for device in members if (device, tier) in into]
            program.add(sent + received, 0.0, equal=True)
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
                if len(members) > 1:
                    _add_late(demand.bytes, tier, members, into, program)
    program.add([(column, -1.0) for (d, _), column in out.items() if d in demand.holders], -1.0, equal=False)


def _add_late(size: float, tier: int, members: Sequence[int], into: Into, program: _Program) -> None:
    """Add the rows of bytes that come late into a block of ``tier`` without a holder."""
    came = {v: [column for (d, t), column in into.items() if t > tier and d == v] for v in members}
    late = {v: program.late_variable(tier, v, size, came[v]) for v in members}
    early = [(column, -1.0) for columns in came.values() for column in columns]
    early += [(column, 1.0) for column in late.values()]
    for v in members:
        program.add([(late[v], 1.0), *((column, -1.0) for column in came[v])], 0.0, equal=False)
        others = [(column, value) for column, value in early if column != late[v]]
        program.add(others, -1.0, equal=False)


def _members(devices: Sequence[int], ports: Ports, tier: int) -> dict[int, list[int]]:
    blocks: dict[int, list[int]] = defaultdict(list)
    for device in devices:
        blocks[ports.block_of(device, tier)].append(device)
    return blocks
