"""The exact exchange: every device is sent what it lacks and nothing else, in rounds of collective_permute.

It asks nothing of the two tilings: sizes need not divide, devices may come in any order, some may hold nothing.
So it is the way where the collectives on groups do not apply, and its bytes are the lower bound wherever the boxes of a
round are of one size.

1. Each device's target tile is cut along the borders of the source tiles. A piece that the device holds itself is
   copied; any other is an edge (holder, device), where the holder is the replica with the least to send so far.
2. The edges are coloured, so that in one colour every device sends once and receives once at most. Koenig's
   theorem: as many colours as the greatest degree suffice; ``coloured`` finds them by alternating paths.
3. A colour is a round. Boxes of a round travel in one shape, the greatest of each dimension; ``extents`` says how much
   of it is meant. Value and accumulator are padded at the end where such a box would stick out.

Cost of planning: O(edges * (rank + rounds)).
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from shardpass.redistribute.candidates.edge_colouring import coloured
from shardpass.redistribute.problem.boxes import Boxes
from shardpass.redistribute.problem.device_arrays import IntArray
from shardpass.redistribute.program import ops
from shardpass.redistribute.program.build import Builder


@dataclass(frozen=True, slots=True)
class Piece:
    """A box that ``sender`` has and ``receiver`` needs."""

    sender: int
    receiver: int
    start: tuple[int, ...]
    stop: tuple[int, ...]

    @property
    def extent(self) -> tuple[int, ...]:
        return tuple(b - a for a, b in zip(self.start, self.stop, strict=True))


def pieces(source: Boxes, target: Boxes) -> list[Piece]:
    """Who sends what to whom; every element of every target box comes from exactly one device."""
    devices = len(source.start)
    held = np.flatnonzero(source.volume)
    tiles: dict[bytes, list[int]] = {}
    for d in held:
        tiles.setdefault(source.start[d].tobytes(), []).append(int(d))
    holders = list(tiles.values())
    first = np.array([h[0] for h in holders], np.int64)
    starts, stops = source.start[first], source.stop[first]
    owner = np.full(devices, -1)
    for number, replicas in enumerate(holders):
        owner[replicas] = number
    sent = [0] * devices
    found = []
    for d in np.flatnonzero(target.volume):
        low = np.maximum(starts, target.start[d])
        high = np.minimum(stops, target.stop[d])
        for t in np.flatnonzero((low < high).all(axis=1)):
            sender = int(d) if owner[d] == t else min(holders[t], key=lambda h: (sent[h], h))
            sent[sender] += sender != d
            found.append(Piece(sender, int(d), tuple(low[t].tolist()), tuple(high[t].tolist())))
    return found


def plan_exchange(
    source: Boxes,
    target: Boxes,
    source_base: IntArray,
    target_base: IntArray,
    target_tile: tuple[int, ...],
    builder: Builder,
    *,
    by_shape: bool = False,
) -> None:
    """Appends the exchange to ``builder``, whose value is the source tile.

    ``by_shape``: boxes of one shape alone share a round. More rounds, and no byte more than must be.
    """
    groups = _rounds_of(pieces(source, target), by_shape)
    rounds = [_round(group, source_base, target_base) for group in groups]
    value = np.array(builder.tile, np.int64)
    accumulator = np.array(target_tile, np.int64)
    for step in rounds:
        value = np.maximum(value, (step.take + step.size).max(axis=0))
        accumulator = np.maximum(accumulator, (step.put + step.size).max(axis=0))
    if target_tile:
        _put_idle(rounds, accumulator)
    begin = ops.BeginExchange(tuple(value.tolist()), tuple(accumulator.tolist()))
    builder.local(begin, builder.tile)
    for step in rounds:
        builder.exchange_round(step)
    builder.local(ops.EndExchange(target_tile, target_base), target_tile)


def _rounds_of(found: list[Piece], by_shape: bool) -> list[list[Piece]]:
    """The pieces by round: small boxes first, and what a device copies from its own tile last."""
    classes: dict[tuple[bool, tuple[int, ...] | None], list[Piece]] = {}
    for piece in found:
        kept = piece.sender == piece.receiver
        classes.setdefault((kept, piece.extent if by_shape else None), []).append(piece)
    out: list[list[Piece]] = []
    for _, members in sorted(classes.items(), key=lambda c: (c[0][0], math.prod(c[1][0].extent))):
        by_round: dict[int, list[Piece]] = {}
        for colour, piece in zip(coloured([(p.sender, p.receiver) for p in members]), members, strict=True):
            by_round.setdefault(colour, []).append(piece)
        out += by_round.values()
    return out


def _put_idle(rounds: list[ops.Round], accumulator: IntArray) -> None:
    """Lets devices that are sent nothing write that where it does no harm, which is cheaper than not to write.

    That is where a later round will write at least as much, or else past the end of dimension 0.
    """
    end = int(accumulator[0])
    for r, step in enumerate(rounds):
        for d in np.flatnonzero(step.source_of < 0):
            later = (s for s in rounds[r + 1 :] if (s.extents[d] >= step.size).all())
            cover = next(later, None)
            if cover is not None:
                step.put[d] = cover.put[d]
            else:
                step.put[d, 0] = end
                accumulator[0] = max(int(accumulator[0]), end + step.size[0])


def _round(group: list[Piece], source_base: IntArray, target_base: IntArray) -> ops.Round:
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
    return ops.Round(tuple(extent.max(axis=0).tolist()), source_of, take, put, extents)
