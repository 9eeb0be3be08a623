"""Simple lower bounds on the makespan of every plan, for all cells at once and without a solver.

A bound is the greatest of, each with the least latency of its tiers:

1. A device that alone of its block of tier t-1 needs bytes that no device of the block has gets these over tiers t
   and beyond, at their rates together.
2. A block of tier t-1 gets what it needs and does not have over tiers t and beyond, at most on all ports of the devices
   in it that need anything.
3. A device that alone has bytes sends one copy; over tiers t and beyond where nobody else in its block of tier t-1
   needs these.

The linear program of ``bound`` has these facts and more. Where a plan reaches them there is nothing to solve.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from shardpass.redistribute.between.cells import Cells
from shardpass.redistribute.between.ports import Ports
from shardpass.redistribute.problem.device_arrays import IntArray

FloatArray = NDArray[np.float64]


def members(sets: Cells, number: IntArray) -> tuple[IntArray, IntArray]:
    """List the members of the sets with these numbers: pairs of a row (of ``number``) and a device."""
    sizes = np.array([len(devices) for devices in sets.sets], np.int64)
    flat = np.array([device for devices in sets.sets for device in devices], np.int64)
    begin = np.cumsum(sizes) - sizes
    count = sizes[number]
    row = np.repeat(np.arange(len(number)), count)
    within = np.arange(len(row)) - np.repeat(np.cumsum(count) - count, count)
    return row, flat[begin[number][row] + within]


def simple_seconds(cells: Cells, ports: Ports) -> float:
    """Return the greatest of the simple bounds on the makespan."""
    if not len(cells):
        return 0.0
    joined, which = np.unique(np.column_stack([cells.holders, cells.receivers]), axis=0, return_inverse=True)
    size = np.bincount(which.reshape(-1), cells.bits / 8)
    holding, holders = members(cells, joined[:, 0])
    needing, receivers = members(cells, joined[:, 1])
    least = 0.0
    for t in range(len(ports.rates)):
        rate, latency = sum(ports.rates[t:]), min(ports.latencies[t:])
        ids = [ports.blocks_of(devices, t - 1) for devices in (holders, receivers)]
        different, number = np.unique(np.concatenate(ids), return_inverse=True)
        span, blocks = len(different), np.split(number.reshape(-1), [len(holders)])
        owned = np.unique(holding * span + blocks[0])
        key = needing * span + blocks[1]
        lacking = ~np.isin(key, owned)
        if not lacking.any():
            break
        wanted, first, count = np.unique(key[lacking], return_index=True, return_counts=True)
        amount = size[needing[lacking][first]]
        alone = receivers[lacking][first][count == 1]
        most = _most(alone, amount[count == 1])
        into = np.bincount(wanted % span, amount, minlength=span)
        _, one = np.unique(receivers, return_index=True)
        ends = np.bincount(blocks[1][one], minlength=span)
        most = max(most, float((into / np.maximum(ends, 1)).max()))
        single = np.bincount(holding, minlength=len(joined)) == 1
        near = np.isin(holding * span + blocks[0], key) & single[holding]
        far = single[holding] & ~near
        most = max(most, _most(holders[far], size[holding[far]]))
        least = max(least, most / rate + latency)
    return least


def _most(devices: IntArray, amount: FloatArray) -> float:
    return float(np.bincount(np.unique(devices, return_inverse=True)[1].reshape(-1), amount).max(initial=0))
