"""The box exchange: send each device only the elements it lacks, in rounds of collective_permute.

Problem: arbitrary source and target tiles: sizes need not divide, devices may come in any order, some may have nothing.
The exchange is the candidate where collectives on groups do not apply. The bytes of a device are the lower
bound wherever the boxes of a round are of one size.

State: the transfers (sender, receiver, box), and the rounds to which they are assigned.

1. Each device's target tile is cut along the borders of the source tiles. A part that the device has itself is
   copied; any other is a transfer from a device that has it, of replicas the one with the least to send so far.
2. The transfers are coloured as edges from senders to receivers (``edge_colouring``): in one colour every device sends
   once and receives once at most, and there are as many colours as the busiest device has transfers.
3. A colour is a round. Its boxes travel in one shape, the greatest extent in each dimension; ``extents`` has the part
   that counts. Value and accumulator are padded at the end where such a box would stick out.

Example: 10 elements on 4 devices, from tiles of 3 (the last has 1) to halves of 5, each on two devices. Devices 0 and
1 need 0..5: device 0 has 0..3 and is sent 3..5 by 1; device 1 is sent 0..3 by 0. Devices 2 and 3 need 5..10: 2 has
6..9 and is sent 5..6 by 1 and 9..10 by 3; 3 is sent 5..6 by 1 and 6..9 by 2. Device 1 sends three times: three rounds.

Invariants: every element of a target tile is written once. O(transfers * (rank + rounds)).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from shardpass.redistribute.candidates.edge_colouring import colour_edges
from shardpass.redistribute.problem.boxes import Boxes
from shardpass.redistribute.problem.device_arrays import IntArray
from shardpass.redistribute.program import ops
from shardpass.redistribute.program.build import Builder


@dataclass(frozen=True, slots=True)
class BoxTransfer:
    """The box ``start <= index < stop`` of the array, which ``sender`` has and ``receiver`` needs."""

    sender: int
    receiver: int
    start: tuple[int, ...]
    stop: tuple[int, ...]

    @property
    def extent(self) -> tuple[int, ...]:
        return tuple(b - a for a, b in zip(self.start, self.stop, strict=True))


def box_transfers(source: Boxes, target: Boxes) -> list[BoxTransfer]:
    """List the transfers; every element of every target box comes from exactly one device."""
    devices = len(source.start)
    owners = np.flatnonzero(source.volume)
    tiles: dict[bytes, list[int]] = {}
    for d in owners:
        tiles.setdefault(source.start[d].tobytes(), []).append(int(d))
    holders = list(tiles.values())
    first = np.array([h[0] for h in holders], np.int64)
    starts, stops = source.start[first], source.stop[first]
    owner = np.full(devices, -1)
    for number, replicas in enumerate(holders):
        owner[replicas] = number
    sent = [0] * devices
    transfers = []
    for d in np.flatnonzero(target.volume):
        low = np.maximum(starts, target.start[d])
        high = np.minimum(stops, target.stop[d])
        for t in np.flatnonzero((low < high).all(axis=1)):
            sender = int(d) if owner[d] == t else min(holders[t], key=lambda h: (sent[h], h))
            sent[sender] += sender != d
            transfers.append(BoxTransfer(sender, int(d), tuple(low[t].tolist()), tuple(high[t].tolist())))
    return transfers


def append_transfers(
    transfers: list[BoxTransfer],
    source_base: IntArray,
    target_base: IntArray,
    target_tile: tuple[int, ...],
    builder: Builder,
) -> None:
    """Append to ``builder``, whose value is the source tile, the permutes that bring each box of the target tile.

    The boxes fill the target tiles of all devices that need theirs.
    """
    rounds = [_round(group, source_base, target_base) for group in _rounds_of(transfers)]
    value = np.array(builder.tile, np.int64)
    accumulator = np.array(target_tile, np.int64)
    for one in rounds:
        value = np.maximum(value, (one.take + one.size).max(axis=0))
        accumulator = np.maximum(accumulator, (one.put + one.size).max(axis=0))
    if target_tile:
        _put_idle(rounds, accumulator)
    begin = ops.BeginBoxExchange(tuple(value.tolist()), tuple(accumulator.tolist()))
    builder.local(begin, builder.tile)
    for one in rounds:
        builder.box_round(one)
    builder.local(ops.EndBoxExchange(target_tile, target_base), target_tile)


def _rounds_of(transfers: list[BoxTransfer]) -> list[list[BoxTransfer]]:
    """Group the transfers by round: copies from a device's own tile last."""
    out: list[list[BoxTransfer]] = []
    for kept in (False, True):
        members = [transfer for transfer in transfers if (transfer.sender == transfer.receiver) is kept]
        by_round: dict[int, list[BoxTransfer]] = {}
        for colour, transfer in zip(colour_edges([(p.sender, p.receiver) for p in members]), members, strict=True):
            by_round.setdefault(colour, []).append(transfer)
        out += by_round.values()
    return out


def _put_idle(rounds: list[ops.BoxRound], accumulator: IntArray) -> None:
    """Choose where devices that receive no data in a round write the zeros they receive instead.

    That is cheaper than a mask. A later round overwrites the place completely, or it lies past the end of dimension 0.
    The content of a device that is sent nothing in any round is arbitrary: it writes anywhere.
    """
    end = int(accumulator[0])
    receives = np.any([one.source_of >= 0 for one in rounds], axis=0)
    for r, one in enumerate(rounds):
        for d in np.flatnonzero((one.source_of < 0) & receives):
            later = (other for other in rounds[r + 1 :] if (other.extents[d] >= one.size).all())
            cover = next(later, None)
            if cover is not None:
                one.put[d] = cover.put[d]
            else:
                one.put[d, 0] = end
                accumulator[0] = max(int(accumulator[0]), end + one.size[0])


def _round(group: list[BoxTransfer], source_base: IntArray, target_base: IntArray) -> ops.BoxRound:
    devices, rank = source_base.shape
    senders = np.array([p.sender for p in group], np.int64)
    receivers = np.array([p.receiver for p in group], np.int64)
    start = np.array([p.start for p in group], np.int64).reshape(len(group), rank)
    extent = np.array([p.stop for p in group], np.int64).reshape(len(group), rank) - start
    source_of = np.full(devices, -1, np.int64)
    source_of[receivers] = senders
    take, put, extents = (np.zeros((devices, rank), np.int64) for _ in range(3))
    take[senders] = start - source_base[senders]
    put[receivers] = start - target_base[receivers]
    extents[receivers] = extent
    return ops.BoxRound(tuple(extent.max(axis=0).tolist()), source_of, take, put, extents)
