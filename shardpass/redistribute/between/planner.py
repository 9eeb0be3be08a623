"""The planner between device sets: build candidates, choose the fastest, and prove it.

1. ``first holder``: every receiver pulls every cell from the first device that has it.
2. ``balanced``: shares by the linear program, each receiver from holders alone.
3. ``passed on in groups``: receivers may send on what came (``trees``); those of a demand are in groups with holders of
   their own (``groups``).
4. ``passed on``: the same without groups; in the host of a holder, within it alone.
5. ``passed on by all``: these may send on to other hosts, too; and the same with ``wide`` trees.

Before these, ``direct`` makes a plan without a search; where it reaches the bound it is the answer.

The candidate of the least makespan is chosen, of equal ones the simpler. Where every cell has one holder and one
receiver the first is the only one. Messages are cut into chunks: about ``CHUNKS`` at the busiest port, none shorter
than a part of a latency; where a memory limit leaves less for buffers, none greater than a quarter of that.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import lru_cache

from shardpass.cost.machine import Machine
from shardpass.diagnostics import table_redistribute as table
from shardpass.redistribute.between.cells import Cell, Cells, Demand, Moved, bytes_of, cells_of, demands
from shardpass.redistribute.between.direct import direct
from shardpass.redistribute.between.facts import simple_seconds
from shardpass.redistribute.between.groups import grouped
from shardpass.redistribute.between.idle import Port
from shardpass.redistribute.between.parts import split
from shardpass.redistribute.between.plan import TransferPlan
from shardpass.redistribute.between.ports import Ports, ports_of
from shardpass.redistribute.between.proof import check
from shardpass.redistribute.between.schedule import RULES, Schedule, messages, scheduled
from shardpass.redistribute.between.sent import Message, as_arrays
from shardpass.redistribute.between.shares import loads, shares
from shardpass.redistribute.between.sides import make_side
from shardpass.redistribute.between.trees import Tree, trees
from shardpass.redistribute.between.waves import MovedArray, Wave
from shardpass.redistribute.problem.checks import find_element_type
from shardpass.redistribute.program.digits import Unproven
from shardpass.redistribute.terms.limit import Limit
from shardpass.sharding import Sharding, TupleSharding

CACHED_PLANS = 256
CHUNKS = (16, 64, 128, 256)  # at the busiest port; tried in turn
DIRECT = "one message a pair"
MOST_EXACT = 4096  # cells, or messages; with more, near enough is enough
NEAR = 1.02  # times the busiest port and a latency: near enough
LATENCIES = 0.25  # the least time of a chunk, in latencies
MOST_MESSAGES = 60_000  # of all schedules of a candidate, after which the best so far is chosen

Routed = list[tuple[Tree, Sequence[Cell]]]


@lru_cache(maxsize=CACHED_PLANS)
def plan_between(
    shape: tuple[int, ...],
    element: str,
    source: Sharding | TupleSharding | str,
    target: Sharding | TupleSharding | str,
    source_devices: tuple[int, ...] | None,
    target_devices: tuple[int, ...] | None,
    machine: Machine,
    limit: Limit,
) -> TransferPlan:
    """Return a proved plan for one array. Raises ShardpassError (SP0xx, SP4xx)."""
    kind = find_element_type(element)
    sides = (
        make_side(shape, source, source_devices, "source"),
        make_side(shape, target, target_devices, "target"),
    )
    return plan_arrays([MovedArray("", shape, kind, *sides)], machine, limit)


def plan_arrays(arrays: Sequence[MovedArray], machine: Machine, limit: Limit) -> TransferPlan:
    """Return a proved plan that moves all arrays together. Raises ShardpassError (SP409, SP413)."""
    numbers = range(len(arrays))
    plan = plan_waves(arrays, [numbers], machine, None)
    if isinstance(limit, int) and plan.peak_bytes > limit:
        least = max(tiles(arrays).values(), default=0)
        plan = plan_waves(arrays, [numbers], machine, max(1.0, (limit - least) / 4))
        if plan.peak_bytes > limit:
            raise table.OVER_LIMIT.error(
                problem=_problem(arrays), limit=limit, least=plan.peak_bytes, way="messages between devices",
                source=_greatest(arrays, "source"), target=_greatest(arrays, "target"),
            )  # fmt: skip
    return plan


def plan_waves(
    arrays: Sequence[MovedArray], waves: Sequence[Sequence[int]], machine: Machine, most: float | None
) -> TransferPlan:
    """Return a proved plan that moves the arrays of each wave together. ``most``: bytes of a message. Raises SP409."""
    planned = [best_wave(_alike(wave, arrays), ports_of(machine), most) for wave in waves]
    for wave, _, _ in planned:
        try:
            check(wave.sent)
        except Unproven as reason:
            raise table.UNPROVEN.error(problem=_problem(arrays), reason=str(reason)) from None
    refused = planned[0][2] if len(planned) == 1 else {}
    ways = ", ".join(dict.fromkeys(way for _, way, _ in planned))
    return TransferPlan(tuple(arrays), tuple(wave for wave, _, _ in planned), machine, ways, refused)


def _alike(numbers: Sequence[int], arrays: Sequence[MovedArray]) -> tuple[Moved, ...]:
    """Group the arrays ``numbers`` by equal shape, width and sides."""
    alike: dict[object, list[int]] = defaultdict(list)
    for number in numbers:
        one = arrays[number]
        alike[one.shape, one.element_type.bits, id(one.source), id(one.target)].append(number)
    groups = [(arrays[group[0]], tuple(group)) for group in alike.values()]
    return tuple(Moved(group, one.element_type.bits, one.source, one.target) for one, group in groups)


def best_wave(moves: tuple[Moved, ...], ports: Ports, most: float | None) -> tuple[Wave, str, dict[str, float]]:
    """Return the fastest candidate, its name, and the other makespans. ``most``: the byte limit of a message."""
    cells = cells_of(moves)
    near = NEAR if len(cells) > MOST_EXACT else 1 + 1e-9
    enough = near * simple_seconds(cells, ports)
    regular = direct(cells, ports, enough)
    fits = most is None or regular.bytes <= most
    if fits and regular.seconds <= enough:
        return Wave(moves, regular.sent, regular.seconds), DIRECT, {}
    wanted = demands(cells, ports.host if len(ports.rates) > 1 else None)
    tried = {DIRECT: Schedule((), regular.seconds)} if fits else {}
    best: tuple[Schedule, Sequence[Message]] | None = (tried[DIRECT], ()) if fits else None
    for way, routed in (*_candidates(wanted, ports), *_by_all(cells, wanted, ports)):
        busiest = _busiest(routed, ports)
        tried[way] = Schedule((), busiest)
        if best and busiest * near >= best[0].seconds:
            continue  # a port alone takes longer
        schedule, sent = _fastest(routed, ports, busiest, most)
        tried[way] = schedule
        if best is None or schedule.seconds < best[0].seconds:
            best = schedule, sent
        if best[0].seconds <= enough * (NEAR if len(best[1]) > MOST_EXACT else 1):
            break
    assert best is not None  # there is a first holder
    schedule, sent = best
    way = next(name for name, other in tried.items() if other is schedule)
    refused = {name: one.seconds for name, one in tried.items() if name != way}
    if way == DIRECT:
        return Wave(moves, regular.sent, regular.seconds), way, refused
    rounds = tuple(tuple(replace(sent[number], after=-1) for number in numbers) for numbers in schedule.rounds)
    return Wave(moves, as_arrays(moves, rounds), schedule.seconds), way, refused


def _fastest(routed: Routed, ports: Ports, busiest: float, most: float | None) -> tuple[Schedule, Sequence[Message]]:
    """Return the fastest schedule over chunk sizes and rules, or the first one close to the time of the busiest
    port.
    """
    best: tuple[Schedule, Sequence[Message]] | None = None
    latency = (
        max(ports.latencies[ports.tier(edge.sender, edge.receiver)] for tree, _ in routed for edge in tree)
        if routed
        else 0.0
    )
    looked_at = 0
    for count in CHUNKS:
        sent = messages(routed, ports, max(busiest / count, LATENCIES * latency), most)
        for rule in RULES:
            schedule = scheduled(sent, ports, rule)
            if best is None or schedule.seconds < best[0].seconds:
                best = schedule, sent
            looked_at += len(sent)
            if best[0].seconds <= NEAR * (busiest + latency):
                return best
            if looked_at > MOST_MESSAGES:
                break
    assert best is not None
    return best


def _busiest(routed: Routed, ports: Ports) -> float:
    """Return seconds for which the busiest port is busy."""
    busy: dict[Port, float] = defaultdict(float)
    for tree, cells in routed:
        for port, count in loads(tree, ports).items():
            busy[port] += count * bytes_of(cells) / ports.rates[port[1]]
    return max(busy.values(), default=0.0)


def _candidates(wanted: Sequence[Demand], ports: Ports) -> Iterator[tuple[str, Routed]]:
    yield (
        "first holder",
        [(_edge(demand.holders[0], one, ports), demand.cells) for demand in wanted for one in demand.receivers],
    )
    if all(len(demand.holders) == len(demand.receivers) == 1 for demand in wanted):
        return
    if any(len(demand.holders) > 1 for demand in wanted):
        alone = [replace(demand, receivers=(one,)) for demand in wanted for one in demand.receivers]
        yield "balanced", _routed(alone, [trees(d.holders, d.receivers, ports, relay=False) for d in alone], ports)
    if any(len(demand.receivers) > 1 for demand in wanted):
        groups = [group for demand in wanted for group in grouped(demand, ports)]
        if len(groups) > len(wanted):
            ways = [trees(d.holders, d.receivers, ports, relay=True) for d in groups]
            yield "passed on in groups", _routed(groups, ways, ports)
        ways = [trees(d.holders, d.receivers, ports, relay=True) for d in wanted]
        yield "passed on", _routed(wanted, ways, ports)


def _by_all(cells: Cells, wanted: Sequence[Demand], ports: Ports) -> Iterator[tuple[str, Routed]]:
    """Let idle receivers in the host of a holder pass data on to other hosts."""
    whole = demands(cells, None)
    if len(whole) < len(wanted) and len(cells) <= MOST_EXACT:
        for wide in (False, True):
            ways = [trees(d.holders, d.receivers, ports, relay=True, wide=wide) for d in whole]
            yield "passed on by all, wide" if wide else "passed on by all", _routed(whole, ways, ports)


def _edge(holder: int, receiver: int, ports: Ports) -> Tree:
    return trees([holder], [receiver], ports, relay=False)[0]


def _routed(wanted: Sequence[Demand], ways: Sequence[Sequence[Tree]], ports: Ports) -> Routed:
    routed: Routed = []
    for demand, chosen in zip(wanted, shares(wanted, ways, ports), strict=True):
        parts = split(demand.cells, [amount for _, amount in chosen])
        routed += [(tree, part) for (tree, _), part in zip(chosen, parts, strict=True) if part]
    return routed


def tiles(arrays: Sequence[MovedArray]) -> dict[int, int]:
    """Return the bytes of the source and target tiles of each device."""
    total: dict[int, int] = defaultdict(int)
    for array in arrays:
        for side in (array.source, array.target):
            for device, (start, stop) in side.boxes.items():
                elements = math.prod(b - a for a, b in zip(start, stop, strict=True))
                total[device] += array.element_type.bytes(elements)
    return total


def _greatest(arrays: Sequence[MovedArray], side: str) -> int:
    return max((a.element_type.bytes(math.prod(getattr(a, side).distribution.tile)) for a in arrays), default=0)


def _problem(arrays: Sequence[MovedArray]) -> str:
    if len(arrays) != 1:
        return f"{len(arrays)} arrays"
    (one,) = arrays
    return f"{'x'.join(map(str, (*one.shape, one.element_type)))} from {one.source.sharding} to {one.target.sharding}"
