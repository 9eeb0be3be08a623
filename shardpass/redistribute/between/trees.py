"""The ways from a holder to all receivers of a demand.

Problem: r devices need the same bytes. Sent r times, the holder's port is busy r times as long as it need be; sent once
and passed on, the receivers' ports share the work. Source: a broadcast as scatter and gather (van de Geijn), and
Mutualcast (Li, Chou, Zhang 2005): each receiver gets its own part of the bytes from the holder and sends that part to
the others.

A tree has a *level*, the tier of the blocks of which each gets one copy from the holder:

1. Level -1: every receiver gets its own copy from the holder.
2. Level t: of the receivers in one block of tier t, one gets the copy: the one with the number ``turn``. That one sends
   to one of each other block of tier t-1, and so on down to devices.
3. With all turns in equal shares, every receiver of a block does the same work.

Example, hosts of 8, 16 receivers in two hosts, level 0, turn 3: the holder sends to devices 3 and 11; 3 sends to 0, 1,
2, 4, 5, 6, 7 and 11 to the rest of its host. Level 1, turn 3: the holder sends to 3, 3 to 11, and both on as before.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from shardpass.redistribute.between.ports import Ports

MOST_TREES = 256  # of one demand


@dataclass(frozen=True, slots=True)
class Edge:
    """``sender`` passes on what came by the edge number ``after`` of the tree; -1: what it holds."""

    sender: int
    receiver: int
    after: int


Tree = tuple[Edge, ...]


def trees(holders: Sequence[int], receivers: Sequence[int], ports: Ports, *, relay: bool) -> list[Tree]:
    """Every level, holder and turn, the simple ones first; with many holders and turns, one turn for each holder."""
    found = [_tree(holder, receivers, ports, -1, 0) for holder in holders]
    if not relay or len(receivers) < 2:
        return found
    for level in range(len(ports.rates)):
        turns = max(len(members) for members in _blocks(receivers, ports, level))
        if turns == 1:
            continue
        count = len(holders) * turns
        if count <= MOST_TREES:
            pairs = [(k % len(holders), k // len(holders)) for k in range(count)]
        else:
            pairs = [(k % len(holders), k % turns) for k in range(max(len(holders), turns))]
        found += [_tree(holders[h], receivers, ports, level, turn) for h, turn in pairs]
    return list(dict.fromkeys(found))


def _blocks(devices: Sequence[int], ports: Ports, level: int) -> list[list[int]]:
    blocks: dict[int, list[int]] = {}
    for device in devices:
        blocks.setdefault(ports.block_of(device, level), []).append(device)
    return list(blocks.values())


def _tree(holder: int, receivers: Sequence[int], ports: Ports, level: int, turn: int) -> Tree:
    edges: list[Edge] = []

    def bring(sender: int, after: int, members: list[int], at: int) -> None:
        """One copy to a block of tier ``at``, and from there to all of its ``members``."""
        first = members[turn % len(members)]
        edges.append(Edge(sender, first, after))
        spread(first, len(edges) - 1, [member for member in members if member != first], at)

    def spread(sender: int, after: int, members: list[int], at: int) -> None:
        for block in _blocks(members, ports, at - 1) if members else ():
            if ports.block_of(block[0], at - 1) == ports.block_of(sender, at - 1):
                spread(sender, after, block, at - 1)
            else:
                bring(sender, after, block, at - 1)

    for block in _blocks(receivers, ports, level):
        bring(holder, -1, block, level)
    return tuple(edges)
