"""Lower bounds on the idle time of ports, valid for every plan.

A port carries its last byte a latency before the end. Before its first byte:

1. A port that sends, of a device that has nothing: something must come first. Over a tier in whose block of the
   device there is no holder nothing comes but from beyond; so it waits for the least latency of the tiers from the
   innermost one that joins it with a holder.
2. A port of tier t that receives: with a holder that sends over tier t, nothing. With holders nearer alone, some other
   device of the block must have received, a latency. Without a holder in its block of tier t, something must have come
   into the block over a tier beyond t.
3. Until the least latency of all has passed only holders send. Of the ports of tier t that wait for nothing by case 2,
   in one block of tier t, no more are busy until then than there are holders in the block.

A port that is never used need not wait: these cases apply where the makespan is at least the wait (``bound``).
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from shardpass.redistribute.between.cells import Demand
from shardpass.redistribute.between.ports import Ports

Port = tuple[bool, int, int]  # whether it receives, tier, device


@dataclass(frozen=True, slots=True)
class Start:
    """A lower bound on idle time, valid for plans whose makespan is at least ``until`` seconds.

    ``idle``: the least sum of the seconds in which ``ports`` are idle.
    """

    ports: tuple[Port, ...]
    idle: float
    until: float


def idle(wanted: Sequence[Demand], ports: Ports, used: Iterable[Port]) -> tuple[dict[Port, float], list[Start]]:
    """Return the idle seconds of each port in ``used``, and bounds on the seconds in which ports are idle together."""
    needs: dict[int, list[Demand]] = defaultdict(list)
    for demand in wanted:
        for receiver in demand.receivers:
            needs[receiver].append(demand)
    holders = {device for demand in wanted for device in demand.holders}
    waits: dict[Port, float] = {}
    at_once: dict[tuple[int, int], list[Port]] = defaultdict(list)
    for port in used:
        receives, tier, device = port
        if receives:
            before = min(_until_received(device, demand, tier, ports) for demand in needs[device])
            if not before:
                at_once[tier, ports.block_of(device, tier)].append(port)
        else:
            before = 0.0 if device in holders else min(_until_sent(device, demand, ports) for demand in needs[device])
        waits[port] = before + ports.latencies[tier]
    starts = []
    least = min(ports.latencies)
    for (tier, block), together in at_once.items():
        senders = sum(ports.block_of(device, tier) == block for device in holders)
        if senders < len(together):
            latency = ports.latencies[tier]
            wait = len(together) * latency + (len(together) - senders) * least
            starts.append(Start(tuple(together), wait, latency + least))
    return waits, starts


def _until_sent(device: int, demand: Demand, ports: Ports) -> float:
    """Return the seconds before a receiver can pass on bytes: the least latency from a holder (case 1)."""
    return min(ports.latencies[min(ports.tier(holder, device) for holder in demand.holders) :])


def _until_received(device: int, demand: Demand, tier: int, ports: Ports) -> float:
    """Return the least seconds before a port of ``tier`` can receive (case 2)."""
    tiers = {ports.tier(holder, device) for holder in demand.holders}
    if tier in tiers:
        return 0.0
    return min(ports.latencies) if min(tiers) < tier else min(ports.latencies[tier + 1 :])
