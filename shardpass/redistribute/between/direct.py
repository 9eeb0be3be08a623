"""Plans in which holders send directly to receivers, one message per pair, computed on index arrays.

Problem: from 256 devices to 128, rows to columns, every pair of devices exchanges a message, of pieces of hundreds of
arrays. Such regular problems need no search:

1. *Holder*: one in the receiver's host where there is one, else any, by turns: the receivers of cells with the same
   holders to choose from ask these one after the other, from the holder on with the number of the source tile. Where
   that is not near the bound: any by turns, whatever the host; the first.
2. *Order*: the circulant one, or where that is not near the bound the greedy one (``meeting``).

The planner accepts such a plan where it is near the bound (``facts``). O(pieces * log).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np

from shardpass.redistribute.between.cells import Cells
from shardpass.redistribute.between.facts import members
from shardpass.redistribute.between.meeting import FloatArray, circulant, greedy
from shardpass.redistribute.between.ports import Ports
from shardpass.redistribute.between.sent import Sent, in_order
from shardpass.redistribute.problem.device_arrays import IntArray

Choice = Literal["near", "turns", "first"]
CHOICES: tuple[Choice, ...] = ("near", "turns", "first")


@dataclass(frozen=True, eq=False)
class Direct:
    """A plan in which holders send directly to receivers: ``sent``, and its makespan. ``bytes``: of the greatest
    message.
    """

    sent: Sent
    seconds: float
    bytes: float


def direct(cells: Cells, ports: Ports, enough: float) -> Direct:
    """Return the plan of cases 1 and 2. ``enough``: a makespan at which the search for better senders and orders
    stops.
    """
    cell, receiver = members(cells, cells.receivers)
    best: Direct | None = None
    known: list[IntArray] = []
    for choice in CHOICES:
        sender = _holders(cells, cell, receiver, choice, ports)
        if any(np.array_equal(sender, other) for other in known):
            continue
        known.append(sender)
        made = _sent(cells, cell, sender, receiver, ports, enough)
        if best is None or made.seconds < best.seconds:
            best = made
        if best.seconds <= enough:
            break
    assert best is not None
    return best


def _sent(cells: Cells, cell: IntArray, sender: IntArray, receiver: IntArray, ports: Ports, enough: float) -> Direct:
    devices, number = np.unique(np.concatenate([sender, receiver]), return_inverse=True)
    one, other = number.reshape(2, -1)
    pairs, message = np.unique(one * len(devices) + other, return_inverse=True)
    message = message.reshape(-1)
    order = np.argsort(message, kind="stable")
    size = np.asarray(np.bincount(message, cells.bits[cell] / 8, minlength=len(pairs)), np.float64)
    ends = devices[pairs // max(1, len(devices))], devices[pairs % max(1, len(devices))]
    rounds, seconds = scheduled_pairs(*ends, size, ports, enough)
    counts = np.array([len(move.arrays) for move in cells.moves], np.int64)
    piece = cell[order]
    sent = Sent(
        cells.moves, *ends, rounds, message[order], cells.move[piece], cells.start[piece], cells.stop[piece],
        np.zeros(len(piece), np.int64), counts[cells.move[piece]],
    )  # fmt: skip
    return Direct(in_order(sent), seconds, float(size.max(initial=0)))


def _holders(cells: Cells, cell: IntArray, receiver: IntArray, choice: Choice, ports: Ports) -> IntArray:
    """Return a holder for each receiver of a cell (case 1)."""
    span = int(receiver.max(initial=0)) + 1
    pairs, pair = np.unique(cells.holders[cell] * span + receiver, return_inverse=True)
    pair = pair.reshape(-1)
    row, holder = members(cells, pairs // span)
    group = pairs // span
    begin = np.searchsorted(row, np.arange(len(pairs)))
    if choice == "first":
        return holder[begin][pair]
    if choice == "near" and len(ports.rates) > 1:
        tier = ports.tiers(holder, (pairs % span)[row])
        nearest = np.minimum.reduceat(tier, begin) if len(begin) else begin
        near = tier == nearest[row]
        row, holder = row[near], holder[near]
        begin = np.searchsorted(row, np.arange(len(pairs)))
        keys = np.column_stack([group, holder[begin], nearest])
        group = np.unique(keys, axis=0, return_inverse=True)[1].reshape(-1)
    count = np.diff(np.append(begin, len(row)))
    turn = _place(group[pair], receiver) + cells.tile[cell]
    return holder[begin[pair] + turn % count[pair]]


def _place(group: IntArray, receiver: IntArray) -> IntArray:
    """Number the entries of each group in the order of receivers."""
    order = np.lexsort((receiver, group))
    ordered = group[order]
    first = np.searchsorted(ordered, ordered)
    place = np.empty(len(group), np.int64)
    place[order] = np.arange(len(group)) - first
    return place


def scheduled_pairs(
    sender: IntArray, receiver: IntArray, size: FloatArray, ports: Ports, enough: float
) -> tuple[IntArray, float]:
    """Return the round of each message and the makespan. ``enough``: seconds that need no better order."""
    tier = ports.tiers(sender, receiver)
    seconds = size / np.array(ports.rates)[tier]
    latency = np.array(ports.latencies)[tier]
    best: tuple[FloatArray, float] | None = None
    for order in (circulant, greedy):
        start = np.zeros(len(sender))
        for t in np.unique(tier).tolist():
            here = np.flatnonzero(tier == t)
            i, j = (np.unique(ends[here], return_inverse=True)[1].reshape(-1) for ends in (sender, receiver))
            start[here] = order(i, j, seconds[here])
        end = float((start + seconds + latency).max(initial=0))
        if best is None or end < best[1]:
            best = start, end
        if best[1] <= enough:
            break
    assert best is not None
    return _rounds(np.argsort(best[0], kind="stable"), tier, sender, receiver), best[1]


def _rounds(order: IntArray, tier: IntArray, sender: IntArray, receiver: IntArray) -> IntArray:
    """Assign each message, in schedule order, the first round in which both ports are free."""
    rounds = np.zeros(len(order), np.int64)
    out: dict[tuple[int, int], int] = {}
    into: dict[tuple[int, int], int] = {}
    columns = (order, tier[order], sender[order], receiver[order])
    for number, t, s, r in zip(*(column.tolist() for column in columns), strict=True):
        rounds[number] = at = max(out.get((t, s), 0), into.get((t, r), 0))
        out[t, s] = into[t, r] = at + 1
    return rounds
