"""Trees by which a holder sends the same bytes to all receivers of a demand.

Problem: r devices need the same bytes. Sent r times, the holder's port is busy r times as long as it need be; sent once
and passed on, the receivers' ports share the work. Source: a broadcast as scatter and gather (van de Geijn), and
Mutualcast (Li, Chou, Zhang 2005): each receiver gets its own part of the bytes from the holder and sends that part to
the others.

A tree has a *level*, the tier of the blocks that get one copy each from the holder:

1. Level -1: every receiver gets its own copy from the holder.
2. Level t: of the receivers in one block of tier t, one gets the copy: the one with the number ``turn``. That one sends
   to one of each other block of tier t-1, and so on down to devices.
3. With all turns in equal shares, every receiver of a block does the same work.
4. A *wide* tree of the outermost level or of the one within: copies for other blocks leave by the ports of all devices
   of a block in turn, not by those of the one that got the copy; receivers in the holder's block get a copy there.

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
    """A step of a tree: ``sender`` passes on bytes received by the edge number ``after``; -1: bytes of its own."""

    sender: int
    receiver: int
    after: int


Tree = tuple[Edge, ...]


def trees(
    holders: Sequence[int], receivers: Sequence[int], ports: Ports, *, relay: bool, wide: bool = False
) -> list[Tree]:
    """List the trees for every level, holder and turn, simple trees first; with many holders and turns, one turn for
    each holder.

    ``wide``: include the trees of case 4.
    """
    result = [_tree(holder, receivers, ports, -1, 0) for holder in holders]
    if not relay or len(receivers) < 2:
        return result
    for level in range(len(ports.rates)):
        turns = max(len(members) for members in _blocks(receivers, ports, level))
        if turns == 1:
            continue
        count = len(holders) * turns
        if count <= MOST_TREES:
            pairs = [(k % len(holders), k // len(holders)) for k in range(count)]
        else:
            pairs = [(k % len(holders), k % turns) for k in range(max(len(holders), turns))]
        result += [_tree(holders[h], receivers, ports, level, turn) for h, turn in pairs]
        if wide and level >= len(ports.rates) - 2 >= 0:
            result += [_wide_tree(holders[h], receivers, ports, level, turn) for h, turn in pairs]
    return list(dict.fromkeys(result))


def _blocks(devices: Sequence[int], ports: Ports, level: int) -> list[list[int]]:
    blocks: dict[int, list[int]] = {}
    for device in devices:
        blocks.setdefault(ports.block_of(device, level), []).append(device)
    return list(blocks.values())


def _tree(holder: int, receivers: Sequence[int], ports: Ports, level: int, turn: int) -> Tree:
    edges: list[Edge] = []

    def bring(sender: int, after: int, members: list[int], at: int) -> None:
        """Send one copy to a block of tier ``at``, and from there to all ``members`` of the block."""
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


def _wide_tree(holder: int, receivers: Sequence[int], ports: Ports, level: int, turn: int) -> Tree:
    """Build a wide tree: copies for other blocks leave by the ports of all devices of a block in turn (case 4)."""
    edges: list[Edge] = []
    by: dict[int, int] = {holder: -1}  # the edge that brings the bytes to a device

    def bring(sender: int, members: list[int], at: int) -> None:
        first = members[turn % len(members)]
        edges.append(Edge(sender, first, by[sender]))
        by[first] = len(edges) - 1
        spread(first, [member for member in members if member != first], at, at - 1)

    def spread(sender: int, members: list[int], at: int, to: int) -> None:
        """Send to ``members``, in the sender's block of tier ``at``, with one copy for each other block of
        tier ``to``.
        """
        if not members:
            return
        near = [d for d in members if ports.block_of(d, at - 1) == ports.block_of(sender, at - 1)]
        if near and at:
            spread(sender, near, at - 1, at - 2)
        carriers = [sender, *near]
        far = [device for device in members if device not in near]
        for k, block in enumerate(_blocks(far, ports, to) if far else ()):
            bring(carriers[(turn + k) % len(carriers)], block, to)

    top = len(ports.rates) - 1
    own = [device for device in receivers if ports.block_of(device, top - 1) == ports.block_of(holder, top - 1)]
    if own:
        bring(holder, own, top - 1)
    carriers = [holder, *own]
    others = [device for device in receivers if device not in own]
    for k, block in enumerate(_blocks(others, ports, level) if others else ()):
        bring(carriers[(turn + k) % len(carriers)], block, level)
    return tuple(edges)
