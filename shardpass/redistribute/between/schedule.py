"""The order of transfers at each port, the rounds, and the makespan.

Problem: transfers with a time each, two ports each, and some that pass on what others brought. An open shop with
precedence. State: ports, each free or busy until a time, and of each the seconds still to come.

1. Whenever ports become free, the pairs of a free sender and a free receiver with a transfer that is ready are started,
   those first whose busier port has most to come. The greatest remaining port sets the makespan, so it is never idle
   where it need not be. (Dense open shops: Bai and Tang 2011.)
2. A message waits for no other message's latency: a port is busy for the bytes, and what arrives can be passed on a
   latency after its last byte.
3. A transfer's round is the first in which neither of its ports has another one and what it passes on has arrived.
   Rounds keep the order of the schedule at each port.

Messages are in chunks (``chunks``), so that a port waits for a part of a message at most, and what is passed on leaves
while the rest arrives. O(transfers * log + pairs looked at when a port becomes free).
"""

from __future__ import annotations

import heapq
import math
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass

from shardpass.redistribute.between.cells import Cell, bytes_of
from shardpass.redistribute.between.parts import split
from shardpass.redistribute.between.ports import Ports
from shardpass.redistribute.between.trees import Edge, Tree


@dataclass(frozen=True, slots=True)
class Message:
    """``cells`` from ``sender`` to ``receiver``; ``after``: the number of the message that brought these; -1: none."""

    sender: int
    receiver: int
    cells: tuple[Cell, ...]
    after: int = -1

    @property
    def bytes(self) -> float:
        return bytes_of(self.cells)


@dataclass(frozen=True, slots=True)
class Schedule:
    """The numbers of messages by round, and the makespan in seconds."""

    rounds: tuple[tuple[int, ...], ...]
    seconds: float


def messages(
    routed: Sequence[tuple[Tree, Sequence[Cell]]], ports: Ports, chunk: float, most: float | None
) -> list[Message]:
    """The messages that carry ``cells`` along trees, of about ``chunk`` seconds and ``most`` bytes at most.

    What goes straight from one device to another, and no further, is one message before it is cut.
    """
    straight: dict[tuple[int, int], list[Cell]] = defaultdict(list)
    found: list[Message] = []

    def cut(tree: Tree, cells: Sequence[Cell]) -> list[list[Cell]]:
        rate = min(ports.rates[ports.tier(edge.sender, edge.receiver)] for edge in tree)
        return chunks(cells, min(max(1.0, chunk * rate), most or math.inf))

    for tree, cells in routed:
        passed_on = any(edge.after >= 0 for edge in tree)
        for part in cut(tree, cells) if passed_on else ():
            first = len(found)
            for edge in tree:
                after = first + edge.after if edge.after >= 0 else -1
                found.append(Message(edge.sender, edge.receiver, tuple(part), after))
        for edge in () if passed_on else tree:
            straight[edge.sender, edge.receiver] += cells
    for (sender, receiver), cells in straight.items():
        alone = (Edge(sender, receiver, -1),)
        found += [Message(sender, receiver, tuple(part)) for part in cut(alone, cells)]
    return found


def chunks(cells: Sequence[Cell], chunk: float) -> list[list[Cell]]:
    """``cells`` in parts of about equal bytes, ``chunk`` at most but for rounding."""
    total = bytes_of(cells)
    count = max(1, -int(-total // chunk))
    return [part for part in split(cells, [total / count] * count) if part] if count > 1 else [list(cells)]


def scheduled(sent: Sequence[Message], ports: Ports) -> Schedule:
    """The schedule of ``sent`` (cases 1 to 3)."""
    tiers = [ports.tier(one.sender, one.receiver) for one in sent]
    seconds = [one.bytes / ports.rates[tier] for one, tier in zip(sent, tiers, strict=True)]
    out = [(tier, one.sender, False) for one, tier in zip(sent, tiers, strict=True)]
    into = [(tier, one.receiver, True) for one, tier in zip(sent, tiers, strict=True)]
    followers: dict[int, list[int]] = defaultdict(list)
    tail = list(seconds)
    for number in range(len(sent) - 1, -1, -1):
        if (after := sent[number].after) >= 0:
            followers[after].append(number)
            tail[after] = max(tail[after], seconds[after] + ports.latencies[tiers[after]] + tail[number])
    to_come: dict[tuple[int, int, bool], float] = defaultdict(float)
    for number, time in enumerate(seconds):
        to_come[out[number]] += time
        to_come[into[number]] += time
    waiting: dict[tuple[int, int, bool], dict[tuple[int, int, bool], list[tuple[float, int]]]]
    waiting = {port: {} for port in to_come}

    def add(number: int) -> None:
        one, other = out[number], into[number]
        queue = waiting[one].get(other)
        if queue is None:
            queue = waiting[one][other] = waiting[other][one] = []
        heapq.heappush(queue, (-tail[number], number))

    for number, message in enumerate(sent):
        if message.after < 0:
            add(number)
    busy: set[tuple[int, int, bool]] = set()
    events: list[tuple[float, int, bool]] = []  # time, message, whether it has arrived (else: its ports are free)
    order: list[int] = []
    now = end = 0.0
    freed = set(waiting)
    while True:
        pairs = []
        for port in freed:
            if port in busy:
                continue
            for other, queue in waiting[port].items():
                if queue and other not in busy and (not port[2] or other not in freed):
                    one, two = (other, port) if port[2] else (port, other)
                    high, low = to_come[one], to_come[two]
                    most = max(high, low, -queue[0][0])
                    pairs.append((-most, -(high + low), one, two))
        pairs.sort()
        for _, _, one, two in pairs:
            if one in busy or two in busy:
                continue
            _, number = heapq.heappop(waiting[one][two])
            order.append(number)
            busy.update((one, two))
            heapq.heappush(events, (now + seconds[number], number, False))
            if number in followers:
                heapq.heappush(events, (now + seconds[number] + ports.latencies[tiers[number]], number, True))
            end = max(end, now + seconds[number] + ports.latencies[tiers[number]])
        if not events:
            break
        now, freed = events[0][0], set()
        while events and events[0][0] <= now * (1 + 1e-12):
            _, number, arrived = heapq.heappop(events)
            if arrived:
                for follower in followers[number]:
                    add(follower)
                    freed.update((out[follower], into[follower]))
            else:
                for port in (out[number], into[number]):
                    busy.discard(port)
                    to_come[port] -= seconds[number]
                    freed.add(port)
    return Schedule(_rounds(order, sent, out, into), end)


def _rounds(
    order: Sequence[int], sent: Sequence[Message], out: Sequence[object], into: Sequence[object]
) -> tuple[tuple[int, ...], ...]:
    last: dict[object, int] = {}
    arrived: dict[int, int] = {}
    rounds: list[list[int]] = []
    for number in order:
        before = arrived.get(sent[number].after, -1)
        at = 1 + max(before, last.get(out[number], -1), last.get(into[number], -1))
        arrived[number] = last[out[number]] = last[into[number]] = at
        if at == len(rounds):
            rounds.append([])
        rounds[at].append(number)
    return tuple(tuple(numbers) for numbers in rounds)
