"""The planner: candidates by the share of each holder, the fastest, and its proof.

1. ``first holder``: every receiver pulls every cell from the first device that has it.
2. ``round robin``: from the holders by turns.
3. ``balanced``: shares by the linear program, each receiver from holders alone.
4. ``passed on``: the same, and receivers may send on what came (``trees``).

The candidate of the least makespan is chosen, of equal ones the simpler. Where every cell has one holder and one
receiver the first is the only one. Messages are cut into chunks: about ``CHUNKS`` at the busiest port, none shorter
than some latencies; where a memory limit leaves less for buffers, none greater than half of that.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import lru_cache

from shardpass.cost.machine import Machine
from shardpass.diagnostics import table_redistribute as table
from shardpass.redistribute.between.cells import Cell, Demand, Moved, bytes_of, demands
from shardpass.redistribute.between.parts import split
from shardpass.redistribute.between.plan import TransferPlan
from shardpass.redistribute.between.ports import Ports, ports_of
from shardpass.redistribute.between.proof import check
from shardpass.redistribute.between.schedule import messages, scheduled
from shardpass.redistribute.between.shares import Port, loads, shares
from shardpass.redistribute.between.sides import make_side
from shardpass.redistribute.between.trees import Tree, trees
from shardpass.redistribute.between.waves import MovedArray, Wave
from shardpass.redistribute.problem.checks import find_element_type
from shardpass.redistribute.program.digits import Unproven
from shardpass.redistribute.terms.limit import Limit
from shardpass.sharding import Sharding, TupleSharding

CACHED_PLANS = 256
CHUNKS = (64, 16)  # at the busiest port; each is tried
LATENCIES = 2  # the least time of a chunk, in latencies

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
    """A proved plan for one array. Raises ShardpassError (SP0xx, SP4xx)."""
    kind = find_element_type(element)
    sides = (
        make_side(shape, source, source_devices, "source"),
        make_side(shape, target, target_devices, "target"),
    )
    return plan_arrays([MovedArray("", shape, kind, *sides)], machine, limit)


def plan_arrays(arrays: Sequence[MovedArray], machine: Machine, limit: Limit) -> TransferPlan:
    """A proved plan that moves all arrays together. Raises ShardpassError (SP409, SP413)."""
    moves = _alike(range(len(arrays)), arrays)
    plan = _planned(arrays, moves, machine, None)
    if isinstance(limit, int) and plan.peak_bytes > limit:
        least = max(tiles(arrays).values(), default=0)
        plan = _planned(arrays, moves, machine, max(1.0, (limit - least) / 4))
        if plan.peak_bytes > limit:
            raise table.OVER_LIMIT.error(
                problem=_problem(arrays), limit=limit, least=plan.peak_bytes, way="messages between devices",
                source=_greatest(arrays, "source"), target=_greatest(arrays, "target"),
            )  # fmt: skip
    return plan


def _alike(numbers: Sequence[int], arrays: Sequence[MovedArray]) -> tuple[Moved, ...]:
    """The arrays ``numbers``; those with equal shape, width and sides together."""
    alike: dict[object, list[int]] = defaultdict(list)
    for number in numbers:
        one = arrays[number]
        key = (one.shape, one.element_type.bits, id(one.source), id(one.target))
        alike[key].append(number)
    groups = [(arrays[group[0]], tuple(group)) for group in alike.values()]
    return tuple(Moved(group, one.element_type.bits, one.source, one.target) for one, group in groups)


def _planned(
    arrays: Sequence[MovedArray], moves: tuple[Moved, ...], machine: Machine, most: float | None
) -> TransferPlan:
    wave, way, refused = best_wave(moves, ports_of(machine), most)
    try:
        check(moves, wave.rounds)
    except Unproven as reason:
        raise table.UNPROVEN.error(problem=_problem(arrays), reason=str(reason)) from None
    return TransferPlan(tuple(arrays), (wave,), machine, way, refused)


def best_wave(moves: tuple[Moved, ...], ports: Ports, most: float | None) -> tuple[Wave, str, dict[str, float]]:
    """The fastest candidate, its name, and the makespans of the others. ``most``: bytes of a message."""
    wanted = demands(moves, ports.host if len(ports.rates) > 1 else None)
    tried: dict[str, Wave] = {}
    for way, routed in _candidates(wanted, ports):
        waves = [_wave(moves, routed, ports, chunk, most) for chunk in _chunks(routed, ports)]
        tried[way] = min(waves, key=lambda wave: wave.seconds)
    way = min(tried, key=lambda name: tried[name].seconds)
    return tried[way], way, {name: wave.seconds for name, wave in tried.items() if name != way}


def _wave(moves: tuple[Moved, ...], routed: Routed, ports: Ports, chunk: float, most: float | None) -> Wave:
    sent = messages(routed, ports, chunk, most)
    order = scheduled(sent, ports)
    rounds = tuple(tuple(replace(sent[number], after=-1) for number in numbers) for numbers in order.rounds)
    return Wave(moves, rounds, order.seconds)


def _candidates(wanted: Sequence[Demand], ports: Ports) -> Iterator[tuple[str, Routed]]:
    def straight(turn: bool) -> Routed:
        return [
            ((_edge(demand.holders[(receiver if turn else 0) % len(demand.holders)], receiver, ports)), demand.cells)
            for demand in wanted
            for receiver in demand.receivers
        ]

    yield "first holder", straight(False)
    if all(len(demand.holders) == len(demand.receivers) == 1 for demand in wanted):
        return
    if any(len(demand.holders) > 1 for demand in wanted):
        yield "round robin", straight(True)
        alone = [replace(demand, receivers=(one,)) for demand in wanted for one in demand.receivers]
        yield "balanced", _routed(alone, [trees(d.holders, d.receivers, ports, relay=False) for d in alone], ports)
    if any(len(demand.receivers) > 1 for demand in wanted):
        ways = [trees(d.holders, d.receivers, ports, relay=True) for d in wanted]
        yield "passed on", _routed(wanted, ways, ports)


def _edge(holder: int, receiver: int, ports: Ports) -> Tree:
    return trees([holder], [receiver], ports, relay=False)[0]


def _routed(wanted: Sequence[Demand], ways: Sequence[Sequence[Tree]], ports: Ports) -> Routed:
    found: Routed = []
    for demand, chosen in zip(wanted, shares(wanted, ways, ports), strict=True):
        parts = split(demand.cells, [amount for _, amount in chosen])
        found += [(tree, part) for (tree, _), part in zip(chosen, parts, strict=True) if part]
    return found


def _chunks(routed: Routed, ports: Ports) -> list[float]:
    """Lengths of messages to try, in seconds."""
    busy: dict[Port, float] = defaultdict(float)
    for tree, cells in routed:
        for port, count in loads(tree, ports).items():
            busy[port] += count * bytes_of(cells) / ports.rates[port[1]]
    longest = max(busy.values(), default=0.0)
    least = LATENCIES * max((ports.latencies[tier] for _, tier, _ in busy), default=0.0)
    return list(dict.fromkeys(max(longest / count, least) for count in CHUNKS))


def tiles(arrays: Sequence[MovedArray]) -> dict[int, int]:
    """Bytes of the source and target tiles of each device."""
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
    if len(arrays) > 1:
        return f"{len(arrays)} arrays"
    (one,) = arrays
    return f"{'x'.join(map(str, (*one.shape, one.element_type)))} from {one.source.sharding} to {one.target.sharding}"
