"""Divide receivers into groups, each served by its own holders.

Problem: 64 devices have the same bytes and 128 need these. Every tree from every holder to all receivers is a column of
the linear program, and each chunk of each tree has 128 messages. Yet nothing is gained where more than one holder
serves a receiver that gets a full copy anyway.

Blocks (``Ports``) that have the bytes and blocks that need these, of the outermost tier that parts either, are cut in
as many runs of neighbours as the fewer of both are; run k of the holders serves run k of the receivers. Every run of
holders sends a copy at least, and runs of receivers differ by one block at most.

Example, hosts of 8: holders 0 to 15, receivers 16 to 47: host 0 serves hosts 2 and 3, host 1 serves hosts 4 and 5.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise

from shardpass.redistribute.between.cells import Demand
from shardpass.redistribute.between.ports import Ports


def grouped(demand: Demand, ports: Ports) -> list[Demand]:
    """Divide ``demand`` into groups of receivers, each with separate holders that send to the group.

    Returns ``demand`` alone if its holders or receivers are one block.
    """
    for tier in reversed(range(len(ports.rates))):
        sides = [_blocks(devices, ports, tier - 1) for devices in (demand.holders, demand.receivers)]
        count = min(map(len, sides))
        if count > 1:
            runs = zip(*(_runs(blocks, count) for blocks in sides), strict=True)
            return [replace(demand, holders=holders, receivers=receivers) for holders, receivers in runs]
        if max(map(len, sides)) > 1:
            break
    return [demand]


def _blocks(devices: Sequence[int], ports: Ports, tier: int) -> list[list[int]]:
    blocks: dict[int, list[int]] = defaultdict(list)
    for device in devices:
        blocks[ports.block_of(device, tier)].append(device)
    return list(blocks.values())


def _runs(blocks: Sequence[Sequence[int]], count: int) -> list[tuple[int, ...]]:
    borders = [len(blocks) * k // count for k in range(count + 1)]
    return [tuple(device for block in blocks[first:last] for device in block) for first, last in pairwise(borders)]
