"""The ports of a machine.

Every device has, for each tier of links, a port that sends and a port that receives, each at the rate of the tier
(``Link.most``): on hosts of 8 H100, 450 GB/s to devices of the host, and its own network card of 50 GB/s to others. A
transfer keeps busy one port of the sender and one of the receiver, those of the innermost tier that joins both. The
network cards of a host are those of its devices. Ports work at the same time.

What is not counted: the links between, on a torus; that a device of a ``Direct`` tier has a link to each of the others
and reaches its rate by several transfers at once alone.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from shardpass.cost.machine import Machine
from shardpass.redistribute.problem.device_arrays import IntArray


@dataclass(frozen=True, slots=True)
class Ports:
    """The tiers: ``blocks`` (devices in a block; None: all), ``rates`` (bytes a second) and ``latencies``."""

    blocks: tuple[int | None, ...]
    rates: tuple[float, ...]
    latencies: tuple[float, ...]

    def tier(self, sender: int, receiver: int) -> int:
        """Return the innermost tier that joins two devices."""
        tiers = enumerate(self.blocks)
        return next(t for t, block in tiers if block is None or sender // block == receiver // block)

    def tiers(self, sender: IntArray, receiver: IntArray) -> IntArray:
        """Return the tier of each of many pairs of devices, like ``tier`` for one pair."""
        tier = np.full(np.broadcast(sender, receiver).shape, len(self.blocks) - 1)
        for t in range(len(self.blocks) - 2, -1, -1):
            tier[sender // (self.blocks[t] or 1) == receiver // (self.blocks[t] or 1)] = t
        return tier

    def blocks_of(self, devices: IntArray, tier: int) -> IntArray:
        """Return the block of each of many devices on ``tier``, like ``block_of`` for one device."""
        size = 1 if tier < 0 else self.blocks[tier]
        return np.zeros_like(devices) if size is None else devices // size

    def block_of(self, device: int, tier: int) -> int:
        """Return the block of ``tier`` in which a device lies; of tier -1 the device itself."""
        size = 1 if tier < 0 else self.blocks[tier]
        return 0 if size is None else device // size

    @property
    def host(self) -> int | None:
        """Number of devices in a block of the innermost tier; None if one tier joins all devices."""
        return self.blocks[0]


@lru_cache(maxsize=64)
def ports_of(machine: Machine) -> Ports:
    links = machine.links
    return Ports(
        tuple(link.devices for link in links),
        tuple(link.most for link in links),
        tuple(link.latency for link in links),
    )
