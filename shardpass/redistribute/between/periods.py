"""The order of messages that are passed on: the same work in every period.

Problem: where receivers pass on what came, list schedules (``schedule``) leave ports idle for what has not arrived. In
the long run nobody need wait (steady-state scheduling of collectives, Beaumont, Legrand, Marchal, Robert 2005):

1. Each tree is cut into ``count`` equal parts. Part k leaves its holder in period k; a device passes it on in the next
   period, or so many periods later as its latency takes.
2. All periods have the same messages, an open shop without precedence (``schedule``), each a small part of a period.
3. Ports keep that order, period by period, and a message starts when both ports are free and what it passes on has
   arrived.

The makespan is near (count + depth * lag) / count of the busiest port's. O(messages * log).
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Sequence

from shardpass.redistribute.between.cells import Cell, bytes_of
from shardpass.redistribute.between.parts import split
from shardpass.redistribute.between.ports import Ports
from shardpass.redistribute.between.schedule import RULES, Job, Schedule, Shop, rounds_of
from shardpass.redistribute.between.sent import Message
from shardpass.redistribute.between.trees import Edge, Tree


def periodic(
    routed: Sequence[tuple[Tree, Sequence[Cell]]], ports: Ports, busiest: float, count: int, pieces: int
) -> tuple[Schedule, Sequence[Message]]:
    """Return the schedule with ``count`` periods, and its messages. ``pieces``: messages of the busiest port in a
    period.
    """
    trees = _joined(routed)
    longest = busiest / count / pieces
    each = [_pieces(tree, bytes_of(cells) / count, ports, longest) for tree, cells in trees]
    place, length = _period(trees, each, ports, count)
    sent: list[Message] = []
    when: list[tuple[int, int]] = []
    for number, (tree, cells) in enumerate(trees):
        parts = [part for part in split(cells, [1.0] * (count * each[number])) if part]
        for k, part in enumerate(parts):
            first = len(sent)
            periods: list[int] = []
            begun, piece = divmod(k * count * each[number] // len(parts), each[number])
            for at, edge in enumerate(tree):
                period = begun if edge.after < 0 else periods[edge.after]
                lag = 1 + math.ceil(ports.latencies[ports.tier(edge.sender, edge.receiver)] / length)
                periods.append(period + lag)
                after = first + edge.after if edge.after >= 0 else -1
                sent.append(Message(edge.sender, edge.receiver, tuple(part), after))
                when.append((period, place[number, piece, at]))
    order = sorted(range(len(sent)), key=lambda number: (when[number], number))
    return _in_order(order, sent, ports), sent


def _pieces(tree: Tree, size: float, ports: Ports, longest: float) -> int:
    """Return the number of messages in which a tree sends ``size`` bytes, so that none takes longer than ``longest``
    seconds.
    """
    rate = min(ports.rates[ports.tier(edge.sender, edge.receiver)] for edge in tree)
    return max(1, math.ceil(size / rate / longest - 1e-6))


def _joined(routed: Sequence[tuple[Tree, Sequence[Cell]]]) -> list[tuple[Tree, list[Cell]]]:
    """Join the cells of equal trees. An edge straight from a device to another, and no further, is its own tree."""
    joined: dict[Tree, list[Cell]] = defaultdict(list)
    for tree, cells in routed:
        alone = [(Edge(edge.sender, edge.receiver, -1),) for edge in tree]
        for one in [tree] if any(edge.after >= 0 for edge in tree) else alone:
            joined[one] += cells
    return list(joined.items())


def _period(
    trees: Sequence[tuple[Tree, Sequence[Cell]]], each: Sequence[int], ports: Ports, count: int
) -> tuple[dict[tuple[int, int, int], int], float]:
    """Return the place of each message (tree, piece, edge) in the order of a period, and how long a period is."""
    names = [(t, piece, at) for t, (tree, _) in enumerate(trees) for piece in range(each[t]) for at in range(len(tree))]
    sizes = [bytes_of(cells) / count / n for (_, cells), n in zip(trees, each, strict=True)]
    edges = [trees[t][0][at] for t, _, at in names]
    jobs = [Job(edge.sender, edge.receiver, sizes[t]) for (t, _, _), edge in zip(names, edges, strict=True)]
    shops = [Shop(jobs, ports, rule) for rule in RULES]
    ends = [shop.run().seconds for shop in shops]
    best = shops[ends.index(min(ends))]
    return {names[number]: k for k, number in enumerate(best.order)}, min(ends)


def _in_order(order: Sequence[int], sent: Sequence[Message], ports: Ports) -> Schedule:
    free: dict[object, float] = defaultdict(float)
    arrived: dict[int, float] = {-1: 0.0}
    for number in order:
        message = sent[number]
        tier = ports.tier(message.sender, message.receiver)
        one, two = (tier, message.sender, False), (tier, message.receiver, True)
        done = max(free[one], free[two], arrived[message.after]) + message.bytes / ports.rates[tier]
        free[one] = free[two] = done
        arrived[number] = done + ports.latencies[tier]
    return Schedule(rounds_of(order, sent, ports), max(arrived.values()))
