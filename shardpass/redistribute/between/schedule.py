"""The order of transfers at each port, the rounds, and the makespan.

Problem: transfers with a time each, two ports each, and some that pass on what others brought. An open shop with
precedence. State: ports, each free or busy until a time, and of each the seconds still to come.

1. Whenever ports become free, the pairs of a free sender and a free receiver with a message that is ready are started
   in the order of a rule (``RULES``): first what others will pass on, as their ports wait for it; then the pairs whose
   ports have most to come, as the greatest remaining port sets the makespan. No rule is the best on all problems: the
   planner tries several.
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
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from shardpass.redistribute.between.cells import Cell, bytes_of
from shardpass.redistribute.between.parts import split
from shardpass.redistribute.between.ports import Ports
from shardpass.redistribute.between.sent import Message
from shardpass.redistribute.between.trees import Edge, Tree

LEAST = 0.05  # of a chunk: a rest that is smaller is shared among the others


@dataclass(frozen=True, slots=True)
class Schedule:
    """The numbers of messages by round, and the makespan in seconds."""

    rounds: tuple[tuple[int, ...], ...]
    seconds: float


def messages(
    routed: Sequence[tuple[Tree, Sequence[Cell]]], ports: Ports, chunk: float, most: float | None
) -> list[Message]:
    """Return the messages that carry ``cells`` along trees, of about ``chunk`` seconds and ``most`` bytes at most.

    What goes straight from one device to another, and no further, is one message before it is cut.
    """
    straight: dict[tuple[int, int], list[Cell]] = defaultdict(list)
    result: list[Message] = []

    def cut(tree: Tree, cells: Sequence[Cell]) -> list[list[Cell]]:
        rate = min(ports.rates[ports.tier(edge.sender, edge.receiver)] for edge in tree)
        return chunks(cells, min(max(1.0, chunk * rate), most or math.inf))

    for tree, cells in routed:
        passed_on = any(edge.after >= 0 for edge in tree)
        for part in cut(tree, cells) if passed_on else ():
            first = len(result)
            for edge in tree:
                after = first + edge.after if edge.after >= 0 else -1
                result.append(Message(edge.sender, edge.receiver, tuple(part), after))
        for edge in () if passed_on else tree:
            straight[edge.sender, edge.receiver] += cells
    for (sender, receiver), cells in straight.items():
        alone = (Edge(sender, receiver, -1),)
        result += [Message(sender, receiver, tuple(part)) for part in cut(alone, cells)]
    return result


def chunks(cells: Sequence[Cell], chunk: float) -> list[list[Cell]]:
    """Split ``cells`` into parts of ``chunk`` bytes and a remainder: equal parts keep ports in step."""
    total = bytes_of(cells)
    count = int(total / chunk * (1 + 1e-9))
    rest = total - count * chunk
    sizes = [chunk] * count + ([rest] if rest > LEAST * chunk else [])
    return [part for part in split(cells, sizes) if part] if len(sizes) > 1 else [list(cells)]


Key = tuple[float, float, float]
Rule = Callable[[int, float, float, float, int], Key]

# Of (messages that pass on the pair's next one, seconds to come at the busier port and at the other one, seconds of the
# next message, messages of the pair that are ready) the key by which pairs are sorted.
RULES: tuple[Rule, ...] = (
    lambda behind, high, low, seconds, ready: (-min(behind, 1), -high - low, -ready),
    lambda behind, high, low, seconds, ready: (-min(behind, 1), -high - low - 5 * seconds * ready, 0),
    lambda behind, high, low, seconds, ready: (-high - behind * seconds, -high - low, 0),
)


def scheduled(sent: Sequence[Message], ports: Ports, rule: Rule = RULES[0]) -> Schedule:
    """Return the schedule of ``sent`` (cases 1 to 3)."""
    return Shop(sent, ports, rule).run()


PortOf = tuple[int, int, bool]  # tier, device, whether it receives


class Shop:
    """Cases 1 and 2. ``order``: the numbers of messages as they start."""

    def __init__(self, sent: Sequence[Message], ports: Ports, rule: Rule) -> None:
        self.sent, self.ports, self.rule = sent, ports, rule
        self.order: list[int] = []
        tiers = [ports.tier(one.sender, one.receiver) for one in sent]
        self.latency = [ports.latencies[tier] for tier in tiers]
        self.seconds = [one.bytes / ports.rates[tier] for one, tier in zip(sent, tiers, strict=True)]
        self.out: list[PortOf] = [(tier, one.sender, False) for one, tier in zip(sent, tiers, strict=True)]
        self.into: list[PortOf] = [(tier, one.receiver, True) for one, tier in zip(sent, tiers, strict=True)]
        self.followers: dict[int, list[int]] = defaultdict(list)
        self.to_come: dict[PortOf, float] = defaultdict(float)
        for number, message in enumerate(sent):
            if message.after >= 0:
                self.followers[message.after].append(number)
            self.to_come[self.out[number]] += self.seconds[number]
            self.to_come[self.into[number]] += self.seconds[number]
        self.behind = [len(self.followers.get(number, ())) for number in range(len(sent))]
        self.waiting: dict[PortOf, dict[PortOf, list[tuple[int, int]]]] = {port: {} for port in self.to_come}

    def run(self) -> Schedule:
        for number, first in enumerate(self.sent):
            if first.after < 0:
                self._ready(number)
        busy: set[PortOf] = set()
        events: list[tuple[float, int, bool]] = []  # time, message, whether it has arrived (else: its ports are free)
        order = self.order
        now = end = 0.0
        freed = set(self.waiting)
        while True:
            for _, one, two in sorted(self._pairs(freed, busy)):
                if one in busy or two in busy:
                    continue
                _, number = heapq.heappop(self.waiting[one][two])
                order.append(number)
                busy.update((one, two))
                done = now + self.seconds[number]
                heapq.heappush(events, (done, number, False))
                if self.behind[number]:
                    heapq.heappush(events, (done + self.latency[number], number, True))
                end = max(end, done + self.latency[number])
            if not events:
                return Schedule(rounds_of(order, self.sent, self.ports), end)
            now, freed = events[0][0], set()
            while events and events[0][0] <= now * (1 + 1e-12):
                _, number, arrived = heapq.heappop(events)
                for message in self.followers[number] if arrived else (number,):
                    freed.update((self.out[message], self.into[message]))
                    if arrived:
                        self._ready(message)
                    else:
                        self._done(message, busy)

    def _ready(self, number: int) -> None:
        one, two = self.out[number], self.into[number]
        queue = self.waiting[one].get(two)
        if queue is None:
            queue = self.waiting[one][two] = self.waiting[two][one] = []
        heapq.heappush(queue, (-self.behind[number], number))

    def _done(self, number: int, busy: set[PortOf]) -> None:
        for port in (self.out[number], self.into[number]):
            busy.discard(port)
            self.to_come[port] -= self.seconds[number]

    def _pairs(self, freed: set[PortOf], busy: set[PortOf]) -> Iterator[tuple[Key, PortOf, PortOf]]:
        """Yield pairs of free ports that have a message ready; at least one port of each pair is in ``freed``."""
        for port in freed:
            if port in busy:
                continue
            for other, queue in self.waiting[port].items():
                if queue and other not in busy and (not port[2] or other not in freed):
                    one, two = (other, port) if port[2] else (port, other)
                    low, high = sorted((self.to_come[one], self.to_come[two]))
                    behind, number = -queue[0][0], queue[0][1]
                    yield self.rule(behind, high, low, self.seconds[number], len(queue)), one, two


def rounds_of(order: Sequence[int], sent: Sequence[Message], ports: Ports) -> tuple[tuple[int, ...], ...]:
    """Return the numbers of messages by round (case 3), in the order of the schedule."""
    last: dict[PortOf, int] = {}
    arrived: dict[int, int] = {}
    rounds: list[list[int]] = []
    for number in order:
        message = sent[number]
        tier = ports.tier(message.sender, message.receiver)
        one, two = (tier, message.sender, False), (tier, message.receiver, True)
        at = 1 + max(arrived.get(message.after, -1), last.get(one, -1), last.get(two, -1))
        arrived[number] = last[one] = last[two] = at
        if at == len(rounds):
            rounds.append([])
        rounds[at].append(number)
    return tuple(tuple(numbers) for numbers in rounds)
