"""Send an array from one device to many along a binomial tree, in a logarithmic number of rounds.

Problem: one device has the array, n others need tiles of it, all equal (a broadcast), all different (a scatter), or
some of each. The box exchange has a round for each of the n. Source: the binomial tree of MPI's broadcast and scatter.

State: segments of the devices, in the order of their target tiles. Of each segment one member, its *leader*, has a
box in which the tiles of all its members lie.

1. At first all devices are one segment, and the leader is the device that has the array.
2. In a round each segment is cut in two halves. The leader stays that of its half; the first member of the other half
   is sent the box of its half. All boxes of a round have one size, the greatest that is needed.
3. After the last round each segment is one device, and its box the target tile.

Example: 8 rows for 4 devices, 2 rows each. Device 0 sends rows 4..8 to device 2; then 0 sends rows 2..4 to 1 while 2
sends rows 6..8 to 3. All 8 rows for each: the same rounds, with all rows each time.

Invariants: a device receives once at most. O(devices * rounds).
"""

from __future__ import annotations

import numpy as np

from shardpass.redistribute.candidates.box_exchange import BoxTransfer, append_transfers
from shardpass.redistribute.problem.boxes import Boxes
from shardpass.redistribute.problem.device_arrays import IntArray
from shardpass.redistribute.problem.problem import Problem
from shardpass.redistribute.program.build import Builder


def append_tree(problem: Problem, root: int, builder: Builder) -> None:
    """Append the rounds of a binomial tree that sends each device its target tile from the device ``root``."""
    needed = problem.target.boxes(problem.shape)
    base, tile = problem.source.base, problem.source.tile
    segments = [(root, _members(needed, root))]
    while any(len(members) > 1 for _, members in segments):
        halves = [(leader, *half) for leader, members in segments for half in _halves(leader, members)]
        segments = [(leader, members) for _, leader, members in halves]
        is_last = all(len(members) == 1 for _, members in segments)
        hulls = [_hull(needed, members) for _, members in segments]
        size = np.max([stop - start for start, stop in hulls], axis=0)
        after = problem.target.base if is_last else np.zeros_like(base)
        transfers = []
        for (parent, leader, _), (start, stop) in zip(halves, hulls, strict=True):
            if not is_last:  # a box of the common size, inside of what the parent has
                start = after[leader] = np.minimum(start, base[parent] + tile - size)
                stop = start + size
            if (start < stop).all():
                transfers.append(BoxTransfer(parent, leader, tuple(start.tolist()), tuple(stop.tolist())))
        to = problem.target.tile if is_last else tuple(size.tolist())
        append_transfers(transfers, base, after, to, builder)
        base, tile = after, to


def _members(needed: Boxes, root: int) -> IntArray:
    """List the devices that need any elements, and ``root``, in the order of their boxes."""
    takes_part = needed.volume > 0
    takes_part[root] = True
    devices = np.flatnonzero(takes_part)
    return devices[np.lexsort((devices, *needed.start[devices].T[::-1]))]


def _halves(leader: int, members: IntArray) -> list[tuple[int, IntArray]]:
    """Cut a segment into halves, each with its leader."""
    if len(members) == 1:
        return [(leader, members)]
    cut = (len(members) + 1) // 2
    return [(leader if leader in half else int(half[0]), half) for half in (members[:cut], members[cut:])]


def _hull(needed: Boxes, members: IntArray) -> tuple[IntArray, IntArray]:
    """Return the least box that contains the boxes of ``members``; without extent where they are all empty."""
    some = members[needed.volume[members] > 0]
    if not len(some):
        return needed.start[members[0]], needed.start[members[0]]
    return needed.start[some].min(axis=0), needed.stop[some].max(axis=0)
